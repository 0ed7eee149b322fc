"""Reading frames as a chain along a window: between genes, or in a codon on either strand.

The states are `plain` (between genes) and, on each strand, three positions of a codon, of a start
codon and of a stop codon. A gene begins with a start codon and ends with a stop codon, or, rarely,
anywhere (`LEAK`); a frame may slip (`SLIP`). The probabilities of the steps are those of compact
genomes and are not fitted. What each state says of a column is `profiles.py`'s.

The other two bases of a codon are the context of its base: so which bases are synonymous is learned
from the columns, not taken from a genetic code.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.memory.columns import Pass, run_chain
from genodiff.memory.tables import Floats
from genodiff.memory.text import NONE, Codes

CODON, CONTEXTS = 3, 17
"""Positions of a codon; contexts of one: sixteen pairs of bases, and one for any."""
ANY = CONTEXTS - 1
GENE, BETWEEN = 1200.0, 400.0
"""Expected bases of a gene, and between two."""
LEAK, SLIP = 0.1, 1 / 3000
"""The share of genes that begin or end anywhere, of those that the chain sees begin; how often a
frame slips."""
GROUPS = ("plain", *(f"{kind}{i}" for kind in ("codon", "start", "stop") for i in range(CODON)))


class FrameState(NamedTuple):
    """`kind` plain, codon, start or stop; `strand` 1 or -1; `phase` 0, 1, 2 along the gene."""

    kind: str
    strand: int
    phase: int

    @property
    def group(self) -> int:
        """Its number in `GROUPS`."""
        return GROUPS.index(self.kind if self.kind == "plain" else f"{self.kind}{self.phase}")


STATES = (
    FrameState("plain", 1, 0),
    *(
        FrameState(kind, strand, phase)
        for kind in ("codon", "start", "stop")
        for strand in (1, -1)
        for phase in range(CODON)
    ),
)


def list_steps() -> Floats:
    """Return (K, K): the probability of each state after each."""
    at = {state: i for i, state in enumerate(STATES)}
    plain, out = STATES[0], np.zeros((len(STATES), len(STATES)))

    def put(one: FrameState, two: FrameState, p: float) -> None:
        out[at[one], at[two]] += p

    for strand in (1, -1):
        # Along the sequence the first codon of a gene is its start on one strand, its stop on the
        # other.
        enter, leave = ("start", "stop")[::strand]
        first, last = (0, 2)[::strand]
        put(plain, FrameState(enter, strand, first), (1 - LEAK) / 2 / BETWEEN)
        for phase in range(CODON):
            now, after = FrameState("codon", strand, phase), (phase + strand) % CODON
            put(plain, now, LEAK / 6 / BETWEEN)
            ends = (1 - LEAK) * CODON / GENE if phase == last else 0.0
            if ends:
                put(now, FrameState(leave, strand, first), ends)
            put(now, plain, LEAK / GENE)
            for other in range(CODON):
                put(now, FrameState("codon", strand, other), SLIP / 2 if other != after else 0.0)
            stay = 1 - ends - LEAK / GENE - SLIP
            put(now, FrameState("codon", strand, after), stay)
            for kind, following in (
                (enter, FrameState("codon", strand, first)),
                (leave, plain),
            ):
                state = FrameState(kind, strand, phase)
                inner = FrameState(kind, strand, after)
                put(state, following if phase == last else inner, 1.0)
    out[0, 0] = 1 - out[0, 1:].sum()
    return out


STEPS = list_steps()


def find_steady(steps: Floats) -> Floats:
    """Return (K,): how often each state is in the long run."""
    n = len(steps)
    return np.linalg.lstsq(np.vstack([steps.T - np.eye(n), np.ones(n)]), np.eye(n + 1)[n])[0]


STEADY = find_steady(STEPS)


def read_contexts(codes: Codes) -> NDArray[np.int64]:
    """Return (K, ..., L): the context of each base, were it in each state; `codes` (..., L)."""
    length = codes.shape[-1]
    known = np.minimum(codes, NONE).astype(np.int64)
    none = np.full((*codes.shape[:-1], 2), NONE)
    padded = np.concatenate([none, known, none], -1)
    out = np.full((len(STATES), *codes.shape), ANY)
    for k, state in enumerate(STATES):
        if state.kind != "codon":
            continue
        pair = []
        for other in range(CODON):
            if other != state.phase:
                by = 2 + state.strand * (other - state.phase)
                base = padded[..., by : by + length]
                pair.append(base if state.strand > 0 else np.where(base < NONE, 3 - base, NONE))
        out[k] = np.where((pair[0] < NONE) & (pair[1] < NONE), pair[0] * 4 + pair[1], ANY)
    return out


def run_frames(emission: Floats) -> Pass:
    """Forward-backward over the states; `emission` (B, L, K)."""
    return run_chain(emission, STEADY, STEPS, _step)


def _step(of: Floats, steps: Floats) -> Floats:
    return np.asarray((of[:, :, None] * steps).sum(1))  # no BLAS: the same bits in any batch
