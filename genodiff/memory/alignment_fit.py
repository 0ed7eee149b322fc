"""The numbers of a relative, fitted by expectation maximisation to windows of the valid split.

A round counts what stands over what, by class, under the numbers so far (Baum 1972), and takes the
divergences, shares and transitions of those counts. Then the chances to begin, to end, to shift and
to turn are each multiplied by factors for as long as the windows become more likely.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from genodiff.memory.alignment import align_windows, expect_pairs
from genodiff.memory.copying import Places, SeenWindow
from genodiff.memory.numbers import RelativeNumbers
from genodiff.memory.text import MemoryText

ROUNDS = 8
_SEARCHED = (2, 5)  # rounds after which the chances of the chain are searched, too
_SEARCH = 36
"""Rounds that take as long as a search: nine tenths of the time go into both."""
_FACTORS = (1.5, 1 / 1.5)
_CHANCES = ("start", "end", "shift", "turns")
_WIDEST = 0.74


class FittedRelative(NamedTuple):
    """The numbers, and nats of a window that the relative explains, before and after."""

    numbers: RelativeNumbers
    before: float
    after: float


def fit_relative(
    text: MemoryText,
    windows: Sequence[SeenWindow],
    found: Sequence[tuple[Places, Places]],
    numbers: RelativeNumbers,
    *,
    rounds: int = ROUNDS,
    tell: Callable[[float], None] | None = None,
) -> FittedRelative:
    """The numbers under which visible bases of `windows` are likeliest; `found`: what a search
    found of each. `tell` gets the share of the work that is done.
    """
    history = []
    for turn in range(rounds):
        pairs, total = np.zeros((len(numbers.share), 4, 4)), 0.0
        for window, (over, likelihood) in zip(
            windows, align_windows(text, windows, found, numbers), strict=True
        ):
            total += _explain(likelihood, numbers)
            pairs += expect_pairs(over, window.codes, window.evidence, numbers)
        history.append(total / len(windows))
        numbers = _count(numbers, pairs)
        if turn in _SEARCHED:
            numbers = _search(text, windows, found, numbers)
        if tell is not None:
            searched = sum(turn >= one for one in _SEARCHED)
            tell((turn + 1 + _SEARCH * searched) / (rounds + _SEARCH * len(_SEARCHED)))
    return FittedRelative(numbers, history[0], history[-1])


def _explain(likelihood: float, numbers: RelativeNumbers) -> float:
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
        aligned = align_windows(text, windows, found, tried)
        return sum(_explain(one.likelihood, tried) for one in aligned)

    best = measure(numbers)
    for name in _CHANCES:
        for factor in _FACTORS:
            improved = False
            while True:
                value = getattr(numbers, name) * factor
                tried = _change(numbers, **{name: value})
                if not 0 < value < 0.5 or tried.stay <= 0.2:
                    break
                cost = measure(tried)
                if cost <= best:
                    break
                numbers, best, improved = tried, cost, True
            if improved:
                break
    return numbers
