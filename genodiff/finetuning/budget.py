"""A choice by validation within a budget: successive halving, then the best or the simplest.

Candidates stand from the simplest to the least simple. Every one is fitted on a share of a whole
fit, and the best few go on to the next share. Of those that end, the best is taken. Where simpler
is better in itself, the first one is taken that is not worse than the best by more than the
standard error of their difference. Nothing here sees a test part, or knows what a candidate is.

Sources: successive halving, Jamieson and Talwalkar, 2016, arXiv 1502.07943; the rule of one
standard error, Breiman et al., Classification and Regression Trees, 1984, section 3.4.3.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from genodiff.errors import GenodiffError
from genodiff.tasks.metrics import is_better

Candidate = TypeVar("Candidate")

SHARES = (0.1, 0.35)
"""The shares of a long fit that candidates are tried at."""

LEAST_STEPS = (500, 2_000)
"""Steps of a trial at least, at each share: a short fit is tried at larger shares, or whole."""

FINALISTS = 2
"""How many candidates go on from one share to the next."""

TINY = 50
"""With fewer validation examples than this nothing is tried: the first candidate is taken."""


def find_shares(steps: int) -> tuple[float, ...]:
    """The shares of a fit of so many steps that candidates are tried at; they rise to 1 at most."""
    found = [
        min(1.0, max(share, least / steps))
        for share, least in zip(SHARES, LEAST_STEPS, strict=True)
    ]
    return tuple(dict.fromkeys(found))


class Budget:
    """Seconds of fits that a choice may take; without `minutes` there is no limit.

    What is spent is counted from what fits report, so a choice that goes on after a stop counts
    the fits of before.
    """

    def __init__(self, minutes: float | None = None) -> None:
        self.limit = math.inf if minutes is None else 60.0 * minutes
        self.spent = 0.0
        self.reserved = 0.0
        """Seconds that are kept for later, so they cannot be afforded now."""

    def spend(self, seconds: float) -> None:
        """Count a fit."""
        self.spent += seconds

    def affords(self, seconds: float) -> bool:
        """Whether a fit of so many seconds is still within it, less what is reserved."""
        return self.spent + seconds <= self.limit - self.reserved


class Trial(NamedTuple):
    """One fit of a candidate, by its place among them: its validation value, NaN if it failed."""

    candidate: int
    share: float
    valid: float
    seconds: float


class Choice(NamedTuple):
    """Which candidate was taken, all trials in their order, and the reason in words."""

    candidate: int
    trials: tuple[Trial, ...]
    why: str


Noise = Callable[[int, int, float], float]
"""(best, other, share) -> the standard error of the difference of their validation values."""


def choose_candidate(
    candidates: Sequence[Candidate],
    evaluate: Callable[[Candidate, float], tuple[float, float]],
    metric: str,
    *,
    budget: Budget,
    shares: Sequence[float],
    noise: Noise | None = None,
    reserve: bool = True,
    sizes: Sequence[float] | None = None,
) -> Choice:
    """The candidate that validation chooses; the first one is always tried.

    `shares` of a whole fit are tried, in rising order. `evaluate(candidate, share)` returns
    (validation value, seconds) of a fit of this share; the value is NaN where the fit failed.
    Without `noise` only equals go to the simpler one. With `reserve` a candidate is tried in short
    only where the budget also holds what the finalists will take. Without, as many as possible are
    tried in short, and finalists where the budget holds all of them. `sizes` are the lengths of
    whole fits beside each other; without, all are equally long. Raises `GenodiffError` where every
    candidate failed.
    """
    sizes = [1.0] * len(candidates) if sizes is None else sizes
    trials: list[Trial] = []
    going = list(range(len(candidates)))
    last: dict[int, float] = {}
    for rung, share in enumerate(shares):
        found: dict[int, float] = {}
        kept = shares[rung:] if reserve else (share,)
        if rung and not reserve:
            ahead = sum(_cost(i, trials, kept, sizes) for i in going)
            if not budget.affords(ahead):
                break
        for i in going:
            later = kept if found else (share,)
            if trials and not budget.affords(_cost(i, trials, later, sizes)):
                break
            valid, seconds = evaluate(candidates[i], share)
            budget.spend(seconds)
            trials.append(Trial(i, share, valid, seconds))
            if math.isfinite(valid):
                found[i] = valid
        if not found:
            break
        if len(found) == 1 and len(last) > 1:
            break  # a value of this share alone says nothing about those of the share before
        last, at = found, share
        if len(found) == 1:
            break
        going = _pick_finalists(found, metric, _at(noise, share))
    if not last:
        raise GenodiffError("every setting that was tried failed", fix="give a lower --lr")
    best = _best(last, metric)
    chosen = next(i for i in sorted(last) if _within(last, best, i, metric, _at(noise, at)))
    return Choice(chosen, tuple(trials), _explain(chosen, best, last, len(candidates), trials))


def look_again(values: Sequence[float], metric: str) -> tuple[int, str]:
    """The best of whole fits, the first of which was chosen before: (which one is taken, why).

    Only equals go to the first. A value is NaN where a fit failed; the first one's did not.
    """
    best = _best({i: value for i, value in enumerate(values) if math.isfinite(value)}, metric)
    return best, "best on validation" if best else "still the best on validation"


def _at(noise: Noise | None, share: float) -> Callable[[int, int], float]:
    return lambda a, b: 0.0 if noise is None else noise(a, b, share)


def _cost(i: int, trials: list[Trial], shares: Sequence[float], sizes: Sequence[float]) -> float:
    """Seconds of a fit at the first of `shares`, and of the finalists' fits at the others."""
    own = [t.seconds / t.share for t in trials if t.candidate == i]
    each = [t.seconds / (t.share * sizes[t.candidate]) for t in trials]
    whole = own[-1] if own else sizes[i] * sum(each) / len(each)
    return whole * (shares[0] + sum(shares[1:]) * FINALISTS)


def _best(values: dict[int, float], metric: str) -> int:
    best = min(values)
    for i in sorted(values):
        if is_better(metric, values[i], values[best]):
            best = i
    return best


def _within(
    values: dict[int, float], best: int, i: int, metric: str, noise: Callable[[int, int], float]
) -> bool:
    if i == best or not is_better(metric, values[best], values[i]):
        return True
    return abs(values[best] - values[i]) <= noise(best, i)


def _pick_finalists(
    values: dict[int, float], metric: str, noise: Callable[[int, int], float]
) -> list[int]:
    """The best, the simplest within noise of it, and then the next best; the simplest first."""
    best = _best(values, metric)
    simplest = next(i for i in sorted(values) if _within(values, best, i, metric, noise))
    kept = [best] if simplest == best else [best, simplest]
    rest = {i: v for i, v in values.items() if i not in kept}
    while rest and len(kept) < FINALISTS:
        kept.append(_best(rest, metric))
        del rest[kept[-1]]
    return sorted(kept)


def _explain(chosen: int, best: int, last: dict[int, float], n: int, trials: list[Trial]) -> str:
    why = "best on validation" if chosen == best else "the simplest within noise of the best"
    tried = len({t.candidate for t in trials})
    return why if tried == n else f"{why}; the budget allowed {tried} of {n} candidates"
