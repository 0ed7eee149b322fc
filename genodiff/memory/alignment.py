"""How a window lies over the genome of a relative: what stands over each place, and how surely.

It is the model of copies (`copying.py`) with numbers of its own (`RelativeNumbers`). A copy may go
on in another class of divergence, because a gene has quicker and slower stretches, and transitions
are told apart from transversions. The last class is close to chance: a stretch that is not alike,
between two that are.

What comes out is over_ies: the chance that place i stands over a base s of the relative in class e,
as told by all visible bases but that of place i. What is left to 1 is the chance that the relative
says nothing of the place. With π the bases' own shares, base b of place i is

    L_i(b) = 1 − Σ over_i + Σ_es over_ies P_e(b | s) / π(b)

times as likely as without the relative.

The diagonals of a search are weighed by the relative's numbers; the best are kept. Around the best
of them, each diagonal within reach is tried, too, as what follows an insertion or deletion.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from genodiff.memory.copying import (
    Places,
    SeenWindow,
    emit,
    find_chance,
    list_shifts,
    read_sources,
    sum_paths,
    weigh_diagonals,
)
from genodiff.memory.evidence import Floats
from genodiff.memory.fast import align_in_c, can_align
from genodiff.memory.numbers import REACH, MemoryNumbers
from genodiff.memory.text import NONE, MemoryText, turn_codes

MOST = 24
"""Diagonals of a strand that are kept, beside those within reach of the best."""
CENTRES = 4
LEAST_ODDS = -5.0
NEAR_ODDS = 3.0
"""ln of the odds, without the price of the place, of a diagonal within reach of a kept one."""


class Aligned(NamedTuple):
    """`over` (L, E, 4): the chance that a place stands over each base, by class; `likelihood`: ln
    of that of the visible bases beside the background's.
    """

    over: Floats
    likelihood: float


def choose_diagonals(
    text: MemoryText, window: SeenWindow, diagonals: tuple[Places, Places], numbers: MemoryNumbers
) -> tuple[Places, Places]:
    """The diagonals of each strand that are worth their states, ascending."""
    turned = window._replace(codes=turn_codes(window.codes), evidence=window.evidence[::-1])
    seen, none = (window, turned), np.zeros(0, np.int64)
    odds = [
        weigh_diagonals(text, one, (d, none), numbers)
        for one, d in zip(seen, diagonals, strict=True)
    ]
    best = max([float(o.max()) for o in odds if len(o)], default=-np.inf)
    chosen = []
    for one, d, of in zip(seen, diagonals, odds, strict=True):
        order = np.lexsort((d, -of))
        order = order[of[order] >= LEAST_ODDS][:MOST]
        kept = d[order]
        centres = order[(of[order] >= 0) & (of[order] >= best / 4)][:CENTRES]
        near = np.unique((d[centres][:, None] + np.arange(-REACH, REACH + 1)).ravel())
        near = near[(near > -len(window.codes)) & (near < text.size)]
        near = np.setdiff1d(near, kept)
        if len(near):
            likely = weigh_diagonals(text, one, (near, none), numbers) + np.log(window.n_loci)
            kept = np.concatenate([kept, near[likely >= NEAR_ODDS]])
        chosen.append(np.sort(kept))
    return chosen[0], chosen[1]


def align_window(
    text: MemoryText, window: SeenWindow, diagonals: tuple[Places, Places], numbers: MemoryNumbers
) -> Aligned:
    """What stands over each place of a window, by forward–backward over the given diagonals."""
    length, n = len(window.codes), sum(map(len, diagonals))
    over = np.zeros((length, len(numbers.share), 4))
    if not n or not window.n_loci:
        return Aligned(over, -np.inf)
    sources = read_sources(text, length, diagonals, window.without)
    emission = emit(window, sources, numbers)
    rate = numbers.start * np.array(numbers.share)[:, None] / window.n_loci
    shifts = numbers.shift * list_shifts(diagonals)
    likelihood, steps = sum_paths(emission, shifts, rate, numbers)
    for i, step in zip(reversed(range(length)), steps, strict=True):
        # Without the place's own base: what stands there says nothing of what it stands over.
        seen = emission[i]
        weight = step.copying / np.where(seen > 0, seen, 1.0)
        total = step.background + weight.sum()
        for base in range(4):
            over[i, :, base] = weight[:, sources[i] == base].sum(1) / total
        over[i] *= find_chance(likelihood - float(np.log(step.total / total)), numbers.copies)
    return Aligned(over, likelihood)


def align_windows(
    text: MemoryText,
    windows: Sequence[SeenWindow],
    found: Sequence[tuple[Places, Places]],
    numbers: MemoryNumbers,
) -> list[Aligned]:
    """As `align_window` of each, with the diagonals that a search found; in C where it can be."""
    if can_align(numbers) and len(windows):
        over, likelihood = align_in_c(text, windows, found, numbers)
        return [Aligned(o, float(ln)) for o, ln in zip(over, likelihood, strict=True)]
    return [
        align_window(text, w, choose_diagonals(text, w, d, numbers), numbers)
        for w, d in zip(windows, found, strict=True)
    ]


def expect_pairs(
    over: Floats, codes: np.ndarray, evidence: Floats, numbers: MemoryNumbers
) -> Floats:
    """(E, 4, 4): how often a visible base stands over each base, by class: for the fit."""
    visible = np.flatnonzero(codes < NONE)
    x = codes[visible]
    said = (
        over[visible] * numbers.emission[:, :, x].transpose(2, 0, 1) / evidence[visible, None, None]
    )
    said /= (1 - over[visible].sum((1, 2)) + said.sum((1, 2)))[:, None, None]
    out = np.zeros((4, *said.shape[1:]))
    np.add.at(out, x, said)
    return out.transpose(1, 2, 0)
