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
of them, each diagonal within reach is tried, too, as what follows an insertion or deletion; where
the diagonals are those of an alignment, each of these.

The numbers of a relative, fitted by expectation maximisation to windows of the valid split.

A round counts what stands over what, by class, under the numbers so far (Baum 1972), and takes the
divergences, shares and transitions of those counts. Then the chances to begin, to end, to shift and
to turn are each multiplied by factors for as long as the windows become more likely. Windows that
are whole say little of the chance to begin, which decides what is made of few visible bases. So for
windows of which most is hidden it is, of several, the one under which hidden bases cost least
(`choose_sparse_start`). Elsewhere that is too large: weak matches cost more beside other genomes.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.memory.copying import (
    Places,
    SeenWindow,
    find_chance,
    sum_copies,
    weigh_diagonals,
)
from genodiff.memory.fast import align_in_c, can_align
from genodiff.memory.fitting import descend, measure_bits
from genodiff.memory.numbers import REACH, MemoryNumbers, RelativeNumbers
from genodiff.memory.tables import Floats
from genodiff.memory.text import NONE, Codes, MemoryText

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
    if window.n_near:
        return diagonals
    seen, none = (window, window.turn()), np.zeros(0, np.int64)
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
        near = np.intersect1d(near, d) if window.is_aligned else near
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
    sources, emission, likelihood, steps = sum_copies(text, window, diagonals, numbers)
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
    alike: NDArray[np.bool_] | None = None,
    *,
    over: bool = True,
    places: bool = False,
) -> tuple[NDArray[Any], Floats]:
    """As `align_in_c`, with the diagonals that a search found; in NumPy where it must be."""
    if can_align(numbers) and len(windows):
        return align_in_c(text, windows, found, numbers, alike, over=over, places=places)
    chosen = [
        (text, w, choose_diagonals(text, w, d, numbers), numbers)
        for w, d in zip(windows, found, strict=True)
    ]
    if places and alike is not None:
        return np.array([place_window(*given, alike) for given in chosen]), np.zeros(0)
    each = [align_window(*given) for given in chosen]
    laid = np.array([one.over for one in each])
    if alike is not None:
        laid = np.array([laid.sum(2), laid[:, :, alike].sum(2)])
    return laid, np.array([one.likelihood for one in each])


def place_window(
    text: MemoryText,
    window: SeenWindow,
    diagonals: tuple[Places, Places],
    numbers: MemoryNumbers,
    alike: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """(L,): the likeliest place of the text over each base, all visible bases given, as 2 times the
    place + 1 on the reverse strand; -1 where classes that are `alike` (E,) have at most half.
    """
    length = len(window.codes)
    out = np.full(length, -1)
    if not sum(map(len, diagonals)) or not window.n_loci:
        return out
    _, _, likelihood, steps = sum_copies(text, window, diagonals, numbers)
    any_copy = find_chance(likelihood, numbers.copies)
    for i, step in zip(reversed(range(length)), steps, strict=True):
        each = step.copying[alike].sum(0)
        if any_copy * each.sum() > 0.5 * (step.background + step.copying.sum()):
            best = int(each.argmax())
            turned = best - len(diagonals[0])
            out[i] = (
                2 * (diagonals[0][best] + i)
                if turned < 0
                else 2 * (diagonals[1][turned] + length - 1 - i) + 1
            )
    return out


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


ROUNDS = 8
_SEARCHED = (2, 5)  # rounds after which the chances of the chain are searched, too
_SEARCH = 36
"""Rounds that take as long as a search: nine tenths of the time go into both."""
_FACTORS = (1.5, 1 / 1.5)
_CHANCES = ("start", "end", "shift", "turns")
_WIDEST = 0.74
_STARTS = (0.003, 0.01, 0.03, 0.1, 0.3, 0.45)


def fit_relative(
    text: MemoryText,
    windows: Sequence[SeenWindow],
    found: Sequence[tuple[Places, Places]],
    numbers: RelativeNumbers,
    *,
    rounds: int = ROUNDS,
    tell: Callable[[float], None] | None = None,
) -> RelativeNumbers:
    """The numbers under which visible bases of `windows` are likeliest; `found`: what a search
    found of each. `tell` gets the share of the work that is done.
    """
    for turn in range(rounds):
        pairs = np.zeros((len(numbers.share), 4, 4))
        laid, _ = align_windows(text, windows, found, numbers)
        for window, over in zip(windows, laid, strict=True):
            pairs += expect_pairs(over, window.codes, window.evidence, numbers)
        numbers = _count(numbers, pairs)
        if turn in _SEARCHED:
            numbers = _search(text, windows, found, numbers)
        if tell is not None:
            searched = sum(turn >= one for one in _SEARCHED)
            tell((turn + 1 + _SEARCH * searched) / (rounds + _SEARCH * len(_SEARCHED)))
    return numbers


def explain_window(likelihood: float, numbers: RelativeNumbers) -> float:
    """ln of the likelihood of a window that may or may not be alike."""
    return float(np.logaddexp(np.log(numbers.copies) + likelihood, np.log1p(-numbers.copies)))


def _count(numbers: RelativeNumbers, pairs: np.ndarray) -> RelativeNumbers:
    bases = np.arange(4)
    turned = (bases[:, None] ^ bases) == 2
    all_ = pairs.sum((1, 2)) + 1
    differ = all_ - 1 - pairs[:, bases, bases].sum(1)
    moved = pairs[:, turned].sum(1)
    order = np.argsort(differ / all_)
    chances = {
        "divergence": np.clip((differ + 0.003) / all_, 1e-4, _WIDEST)[order],
        "transitions": np.clip((moved + 0.5) / (differ + 1.5), 0.05, 0.95)[order],
        "share": (all_ / all_.sum())[order],
    }
    return _change(numbers, **{k: tuple(v.tolist()) for k, v in chances.items()})


def _change(numbers: RelativeNumbers, **changes: object) -> RelativeNumbers:
    return RelativeNumbers(**{**numbers.model_dump(), **changes})


def _search(
    text: MemoryText,
    windows: Sequence[SeenWindow],
    found: Sequence[tuple[Places, Places]],
    numbers: RelativeNumbers,
) -> RelativeNumbers:
    """Coordinate search: scale each probability of the chain while the likelihood rises."""

    def measure(tried: RelativeNumbers) -> float:
        likely = align_windows(text, windows, found, tried, over=False)[1].tolist()
        return -sum(explain_window(one, tried) for one in likely)

    def scale(name: str, of: RelativeNumbers, factor: float) -> RelativeNumbers | None:
        value = getattr(of, name) * factor
        tried = _change(of, **{name: value})
        return tried if 0 < value < 0.5 and tried.stay > 0.2 else None

    least = measure(numbers)
    for name in _CHANCES:
        numbers, least = descend(numbers, least, _FACTORS, partial(scale, name), measure)
    return numbers


def choose_sparse_start(
    text: MemoryText,
    windows: Sequence[SeenWindow],
    found: Sequence[tuple[Places, Places]],
    clean: Codes,
    numbers: RelativeNumbers,
) -> RelativeNumbers:
    """The numbers with the `sparse_start` under which the hidden bases of `windows` cost least.

    `clean` (B, L): what stands there; bases have their shares in it where the relative is silent.
    """
    hidden = np.stack([one.codes for one in windows])
    shares = np.bincount(clean[clean < NONE], minlength=4) + 1.0

    def measure(tried: RelativeNumbers) -> float:
        over, _ = align_windows(text, windows, found, tried)
        said = np.einsum("bles,esx->blx", over, tried.emission)
        said += (1 - over.sum((2, 3)))[..., None] * (shares / shares.sum())
        return float(np.nanmean(measure_bits(said, hidden, clean)))

    starts = (numbers.start, *_STARTS)
    best = min((_change(numbers, start=one) for one in starts), key=measure)
    return _change(numbers, sparse_start=best.start)
