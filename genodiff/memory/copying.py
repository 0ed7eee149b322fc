"""The hidden Markov model of a window that may copy the training genome.

A window's place i is in the background, or copies the text: locus d (a diagonal: place i copies
place d + i) at divergence class e, with eps_e = divergence[e] and q_e = share[e]. There are N loci:
every base of the text, on both strands.

    background → (d, e)      start · q_e / N        (d, e) → background   end
    (d, e) → (d + δ, e)      shift · g(δ)           (d, e) → (d, e)       1 − end − shift
    g(δ) = 1 / (2 H |δ|),  1 ≤ |δ| ≤ 32,  H = 1 + 1/2 + ... + 1/32

A visible base costs eps_e / 3 where it differs from its source and 1 − eps_e where it does not,
relative to the evidence (`memory/tables.py`), which is what it costs in the background. A place
of the text that is no base cannot be copied. The chain is in detailed balance, so forward–backward
gives the same for both strands.

Only paths through the given diagonals are summed over. With all diagonals this is the whole model;
with those that a search found, the others' share is left out.

Most windows copy nothing. So the chain above is that of a share `copies` of the windows, and the
others are in the background throughout. With Z the likelihood of the visible bases under the chain,
relative to the evidence, a window is one of the former with chance

    ρ = copies · Z / (copies · Z + 1 − copies)

What comes out: w0_i, the chance of the background at place i, and copy_ia, the chance that i copies
and its base is a. w0_i + Σ_a copy_ia = 1.

This file is the definition, in float64. `native/recall.h` has it in C.
"""

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from genodiff.memory.numbers import REACH, MemoryNumbers
from genodiff.memory.tables import Floats
from genodiff.memory.text import NONE, PAD, Codes, MemoryText, turn_codes

Places = NDArray[np.int64]

IN_REGIONS = 0.9
"""The chance that a copy begins in the regions that were found of a far relative."""
_HUGE = 1e200
_LARGEST = 700.0  # whose exponential is finite


class SeenWindow(NamedTuple):
    """One window as the model sees it.

    `codes` (L,): visible bases, 4 where there is none. `evidence` (L,). `without`: the interval of
    the text, start and end, that counts as if it were not there. `n_loci`: N. `is_aligned`: the
    diagonals are those of an alignment, and no others are tried. `n_near`: of a far relative the
    loci of the regions that were found, all of whose diagonals are kept (`far.py`); else 0.
    """

    codes: Codes
    evidence: Floats
    without: tuple[int, int]
    n_loci: int
    is_aligned: bool = False
    n_near: int = 0

    def turn(self) -> Self:
        """The reverse complement."""
        evidence = np.ascontiguousarray(self.evidence[::-1])
        return self._replace(codes=turn_codes(self.codes), evidence=evidence)


def list_all_diagonals(text: MemoryText, length: int) -> tuple[Places, Places]:
    """Every diagonal on which a window of `length` meets the text, on each strand."""
    every = np.arange(1 - length, text.size, dtype=np.int64)
    return every, every


def read_sources(
    text: MemoryText, length: int, diagonals: tuple[Places, Places], without: tuple[int, int]
) -> Codes:
    """(L, D): the base that each place would copy on each diagonal, first those of strand 0.

    A diagonal of strand 1 is one of the window's reverse complement. What is no base is 4.
    """
    parts = []
    for strand, offsets in enumerate(diagonals):
        at = offsets[:, None] + np.arange(length)
        codes = text.codes[np.clip(at + PAD, 0, len(text.codes) - 1)]
        codes = np.where((at >= without[0]) & (at < without[1]), np.uint8(NONE), codes)
        parts.append(turn_codes(codes) if strand else codes)
    return np.ascontiguousarray(np.concatenate(parts).T)


def list_shifts(diagonals: tuple[Places, Places]) -> Floats:
    """(D, D): g of the distance of two diagonals of the same strand, 0 beyond the reach."""
    strand = np.concatenate([np.full(len(d), s) for s, d in enumerate(diagonals)])
    offset = np.concatenate(diagonals)
    far = np.abs(offset[:, None] - offset)
    scale = 2 * (1 / np.arange(1, REACH + 1)).sum()
    near = (far > 0) & (far <= REACH) & (strand[:, None] == strand)
    return np.where(near, 1 / (scale * np.maximum(far, 1)), 0.0)


def emit(window: SeenWindow, sources: Codes, numbers: MemoryNumbers) -> Floats:
    """(L, E, D): the likelihood of each place in each copying state, relative to the background."""
    visible = window.codes < NONE
    seen = numbers.emission[:, np.minimum(sources, 3), np.minimum(window.codes, 3)[:, None]]
    seen = np.where(visible[:, None], seen / window.evidence[:, None], 1.0)
    return np.ascontiguousarray(np.where(sources == NONE, 0.0, seen).transpose(1, 0, 2))


class Step(NamedTuple):
    """What the paths through one place weigh: `background`, (E, D) `copying`, `total` of all."""

    background: float
    copying: Floats
    total: float


def sum_paths(
    emission: Floats, shifts: Floats, rate: Floats, numbers: MemoryNumbers
) -> tuple[float, Iterator[Step]]:
    """ln Z, and what the paths through each place weigh, from the last place to the first.

    `emission` (L, E, D). `shifts` (D, D): the chance of going on at another diagonal. `rate`
    (E, D), or (E, 1): the chance to begin.
    """
    share = np.array(numbers.share)[:, None]
    # Before the window the chain is in its steady state.
    whole = numbers.start + numbers.end
    background, copying = numbers.end / whole, np.broadcast_to(rate / whole, emission.shape[1:])
    forward: list[tuple[float, Floats]] = []
    likelihood = 0.0
    for i, seen in enumerate(emission):
        if i:
            old, before = background, copying
            background = (1 - numbers.start) * old + numbers.end * before.sum()
            copying = numbers.stay * before + before @ shifts + rate * old
            if numbers.turn:
                copying += numbers.turn * share * before.sum(0)
        copying = copying * seen
        total = background + copying.sum()
        background, copying = background / total, copying / total
        likelihood += float(np.log(total))
        forward.append((background, copying))

    def go_back() -> Iterator[Step]:
        after, behind = 1.0, np.ones_like(copying)
        for seen, (one, many) in zip(emission[::-1], reversed(forward), strict=True):
            weight = many * behind
            yield Step(one * after, weight, one * after + weight.sum())
            passed, old = behind * seen, after
            after = (1 - numbers.start) * old + (rate * passed).sum()
            behind = numbers.stay * passed + passed @ shifts.T + numbers.end * old
            if numbers.turn:
                behind += numbers.turn * (share * passed).sum(0)
            top = max(after, float(behind.max()))
            after, behind = after / top, behind / top

    return likelihood, go_back()


def sum_copies(
    text: MemoryText, window: SeenWindow, diagonals: tuple[Places, Places], numbers: MemoryNumbers
) -> tuple[Codes, Floats, float, Iterator[Step]]:
    """What each place of a window would copy (L, D) on the given diagonals, its emission (L, E, D),
    and what `sum_paths` gives.
    """
    sources = read_sources(text, len(window.codes), diagonals, window.without)
    emission = emit(window, sources, numbers)
    rate, choice = numbers.start * np.array(numbers.share)[:, None] / window.n_loci, 0.0
    if near := window.n_near:
        rate *= IN_REGIONS * window.n_loci / near + 1 - IN_REGIONS
        choice = float(np.log(near / window.n_loci))
    shifts = numbers.shift * list_shifts(diagonals)
    likelihood, steps = sum_paths(emission, shifts, rate, numbers)
    return sources, emission, likelihood + choice, steps


def recall_window(
    text: MemoryText, window: SeenWindow, diagonals: tuple[Places, Places], numbers: MemoryNumbers
) -> tuple[Floats, Floats]:
    """w0 (L,) and copy (L, 4) of one window, by forward–backward over the given diagonals."""
    length, n = len(window.codes), sum(map(len, diagonals))
    w0, copy = np.ones(length), np.zeros((length, 4))
    if not n or not window.n_loci:
        return w0, copy
    sources, _, likelihood, steps = sum_copies(text, window, diagonals, numbers)
    any_ = find_chance(likelihood, numbers.copies)
    for i, step in zip(reversed(range(length)), steps, strict=True):
        w0[i] = step.background / step.total
        says = numbers.emission[:, np.minimum(sources[i], 3)]  # (E, D, 4)
        copy[i] = (step.copying[..., None] * says).sum((0, 1)) / step.total
    return 1 - any_ * (1 - w0), any_ * copy


def find_chance(likelihood: float, copies: float) -> float:
    """ρ: the chance that a window copies, from ln Z."""
    if copies == 1:
        return 1.0
    return float(1 / (1 + (1 - copies) / copies * np.exp(min(-likelihood, _LARGEST))))


def weigh_diagonals(
    text: MemoryText, window: SeenWindow, diagonals: tuple[Places, Places], numbers: MemoryNumbers
) -> Floats:
    """ln of the odds that a window copies from each diagonal alone, against the background.

    The odds are Σ over segments of start · q_e / N · likelihood · end. Diagonals of strand 0 first.
    """
    n = sum(map(len, diagonals))
    if not n or not window.n_loci:
        return np.full(n, -np.inf)
    sources = read_sources(text, len(window.codes), diagonals, window.without)
    emission = emit(window, sources, numbers)
    share = np.array(numbers.share)[:, None]
    rate = numbers.start * share / window.n_loci
    states, total, scale = np.zeros(emission.shape[1:]), np.zeros(n), np.zeros(n)
    entry = np.ones(n)  # 1, in units of the scale
    for at in emission:
        more = rate * entry
        if numbers.turn:
            more += numbers.turn * share * states.sum(0)
        states = (numbers.stay * states + more) * at
        total = total + numbers.end * states.sum(0)
        large = total > _HUGE
        for each in (states, total, entry):
            each[..., large] /= _HUGE
        scale[large] += np.log(_HUGE)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(total) + scale)
