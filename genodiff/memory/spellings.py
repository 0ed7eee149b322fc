"""How likely related genomes make one spelling of a window beside another: indels.

With Z_g(x) the sum over all paths of the chain of copies (`copying.py`) beside the evidence,

    log p_g(x) = log (copies_g Z_g(x) + 1 - copies_g) + Σ_i log evidence_gi(x)
    score      = Σ_g v_g bound(log p_g(ALT) - log p_g(REF)) / Σ_g v_g
                 + CHANGE log r + log (1 - coding (1 - SLIP))

A path may follow an insertion or deletion at each base, so both spellings are summed over all their
alignments and no gap is placed: one pass forward for each spelling. Both are given the diagonals
that a search of either finds, also shifted by the difference in length; the sum is exact but for
diagonals that no search finds. bound: to ±BOUND, since beyond it the ratio tells how an alignment
breaks, not how an indel is tolerated. v: the vote of each genome (`votes.weigh_relatives`). r: how
quickly the positions around change (`votes.measure_change`). coding: the probability that the
position is in a codon (`profiles.py`); the last term is left out where a reading frame is kept.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from genodiff.memory.alignment import align_windows, explain_window
from genodiff.memory.copying import Places, SeenWindow
from genodiff.memory.frames import CODON, SLIP
from genodiff.memory.memory import Memory
from genodiff.memory.numbers import RelativeNumbers
from genodiff.memory.profiles import ProfileScores
from genodiff.memory.relatives import Relatives
from genodiff.memory.search import Effort
from genodiff.memory.tables import Floats
from genodiff.memory.text import Codes
from genodiff.memory.tree import measure_change

EFFORT = Effort(most=8)
CONTEXT = 512
"""Bases of a window that are read."""
BOUND, CHANGE = 6.0, 2.0
AROUND = 96
"""Bases on either side that tell the reading frame."""


def score_spellings(
    relatives: Relatives, profiles: ProfileScores, weights: Floats, ref: Codes, alt: Codes,
    span: tuple[int, int],
) -> float:  # fmt: skip
    """Return the score of `alt` in place of `ref`, spellings (L,) of a window, in nats.

    `span`: the first base of `ref` that differs, and the last + 1. `weights` (G,): the votes.
    """
    flank = max(CONTEXT - span[1] + span[0], CONTEXT // 2) // 2
    start, end = max(span[0] - flank, 0), min(span[1] + flank, len(ref))
    ref, alt = ref[start:end], alt[start : len(alt) - (len(ref) - end)]
    found = compare_spellings(relatives, ref, alt)
    at = slice(max(span[0] - start - 1, 0), span[1] - start + 1)
    change = measure_change(found.over[:, None], ref[None])[0, at].mean()
    bounded = found.log_ratio.clip(-BOUND, BOUND)
    score = float(bounded @ weights / weights.sum() + CHANGE * np.log(change))
    if (len(alt) - len(ref)) % CODON:
        near = slice(max(at.start - AROUND, 0), at.stop + AROUND)
        inside = slice(at.start - near.start, at.stop - near.start)
        states = profiles.tell_states(found.over[:, None, near], ref[None, near])[0, inside]
        coding = 1 - states[:, 0].mean()
        score += float(np.log1p(-coding * (1 - SLIP)))
    return score


class ComparedSpellings(NamedTuple):
    """`log_ratio` (G,): log p(ALT) - log p(REF) given each genome; `over` (G, L, 4): what each has
    over the reference window, as `Relatives.align` gives it.
    """

    log_ratio: Floats
    over: Floats


def compare_spellings(relatives: Relatives, ref: Codes, alt: Codes) -> ComparedSpellings:
    """Compare two spellings of a window, `ref` and `alt` (L,), given each genome."""
    ratios, overs = [], []
    for genome in relatives.genomes:
        memory, less = genome.memory.with_effort(EFFORT), len(ref) - len(alt)
        seen = [memory.search(codes[None]) for codes in (ref, alt)]
        logs: list[tuple[float, Floats]] = []
        for (windows, here), (_, there), shift in zip(seen, seen[::-1], (less, -less), strict=True):
            diagonals = [
                np.unique(np.concatenate([own, own + shift, other, other + shift]))
                for own, other in zip(here[0], there[0], strict=True)
            ]
            given = memory, genome.numbers, windows[0], diagonals
            logs.append(sum_alignments(*given, over=not logs))
        ratios.append(logs[1][0] - logs[0][0])
        overs.append(logs[0][1])
    return ComparedSpellings(np.array(ratios), np.array(overs))


def sum_alignments(
    memory: Memory, numbers: RelativeNumbers, window: SeenWindow, diagonals: Sequence[Places],
    *, over: bool,
) -> tuple[float, Floats]:  # fmt: skip
    """Return log p of a window over all its alignments to `diagonals` of each strand, and (L, 4)
    what lies over it (zeros unless `over`).
    """
    length = len(window.codes)
    first, second = (d[(d > -length) & (d < memory.text.size)] for d in diagonals)
    laid, logs = align_windows(memory.text, [window], [(first, second)], numbers, over=over)
    here = laid[0].sum(1) if over else np.zeros((length, 4))
    return float(explain_window(logs[0], numbers) + np.log(window.evidence).sum()), here
