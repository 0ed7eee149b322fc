"""A choice by validation: all candidates in short, the best few for longer, and the best is taken.

Candidates stand from the simplest to the least simple; of equals the simplest is taken. A share of
the train part validates, drawn anew for each seed. Sixty examples of one seed cannot tell heads
apart that differ by five points, so small tasks ask several seeds, of those that the sweep runs;
where these have too few together, the simplest is taken untried. No test part is read.

Source: successive halving, Jamieson and Talwalkar, 2016, arXiv 1502.07943.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from genodiff.errors import GenodiffError
from genodiff.tasks.metrics import is_better
from genodiff.tasks.task import TaskData, seed_split

Candidate = TypeVar("Candidate")

SHARES = (0.1, 0.35)
"""The shares of a long fit that candidates are tried at."""

LEAST_STEPS = (500, 2_000)
"""Steps of a trial at least, at each share: a short fit is tried at larger shares, or whole."""

FINALISTS = 2
"""How many candidates go on from one share to the next."""

FEW, ENOUGH, MOST = 100, 200, 5
"""With fewer than `FEW` validation examples, as many seeds as have `ENOUGH` together, at most
`MOST`. With fewer than `FEW` of all seeds nothing is tried: the first candidate is taken."""


def find_shares(steps: int) -> tuple[float, ...]:
    """The shares of a fit of so many steps that candidates are tried at; they rise to 1 at most."""
    found = [
        min(1.0, max(share, least / steps))
        for share, least in zip(SHARES, LEAST_STEPS, strict=True)
    ]
    return tuple(dict.fromkeys(found))


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
    why: str = "best on validation"


def choose_candidate(
    candidates: Sequence[Candidate],
    evaluate: Callable[[Candidate, float], tuple[float, float]],
    metric: str,
    shares: Sequence[float],
) -> Choice:
    """The candidate that validation chooses.

    `shares` of a whole fit are tried, in rising order. `evaluate(candidate, share)` returns
    (validation value, seconds) of a fit of this share; the value is NaN where the fit failed.
    Raises `GenodiffError` where every candidate failed.
    """
    trials: list[Trial] = []
    going = list(range(len(candidates)))
    last: dict[int, float] = {}
    for share in shares:
        tried = [Trial(i, share, *evaluate(candidates[i], share)) for i in going]
        trials += tried
        found = {t.candidate: t.valid for t in tried if math.isfinite(t.valid)}
        if not found or (len(found) == 1 and len(last) > 1):
            break  # one value of this share says nothing about those of the share before
        last = found
        if len(found) == 1:
            break
        going = sorted(_rank(found, metric)[:FINALISTS])
    return Choice(_rank(last, metric)[0], tuple(trials))


def take_best(candidates: Sequence[Candidate], values: Sequence[float], metric: str) -> Candidate:
    """The candidate with the best value, the first of equals.

    Raises `GenodiffError` where all are NaN, for fits that failed.
    """
    found = {i: value for i, value in enumerate(values) if math.isfinite(value)}
    return candidates[_rank(found, metric)[0]]


def _rank(values: dict[int, float], metric: str) -> list[int]:
    """The best first, and of equals the first. Raises `GenodiffError` where there is none."""
    if not values:
        raise GenodiffError("all settings failed", fix="give a lower --lr")
    sign = -1.0 if is_better(metric, 1.0, 0.0) else 1.0
    return sorted(values, key=lambda i: (sign * values[i], i))


def list_choosing_seeds(data: TaskData, seed: int, most: int = MOST) -> range:
    """The seeds from `seed` on, at most `most`; one where the validation part is published."""
    if data.valid_index is not None:
        return range(seed, seed + 1)
    return range(seed, seed + count_choosing_seeds(len(seed_split(data, seed)[1]), most))


def count_choosing_seeds(n_valid: int, most: int = MOST) -> int:
    """How many seeds choose where each draws so many validation examples of its own."""
    return 1 if n_valid >= FEW else min(most, MOST, math.ceil(ENOUGH / max(1, n_valid)))


def name_seeds(seeds: Sequence[int]) -> str:
    """`seed 1` or `seeds 1 to 4`."""
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def describe_choice(choice: dict[str, Any], most: int = 6) -> str:
    """`parts 7: best on validation of seed 1 (mcc on 613: mean .52, parts 7 .80)`, in full.

    Rows of older versions also have the minutes that a choice was given.
    """
    last: dict[str, tuple[float, float | None]] = {}
    for trial in choice["trials"]:
        last[trial["candidate"]] = (trial["share"], trial["valid"])
    shown = [
        f"{name} {'failed' if valid is None else f'{valid:.4f}'}"
        + ("" if share == 1 else f" after {share:g} of the epochs")
        for name, (share, valid) in sorted(last.items(), key=lambda item: -item[1][0])
    ]
    more = [f"{len(shown) - most} more"] if len(shown) > most else []
    text = f"{choice['chosen']}: {choice['why']}"
    if shown:
        seeds = choice.get("by", "validation of seed 1").removeprefix("validation of ")
        what = f"{choice['metric']} on {choice['n_valid']:,} examples of {seeds}"
        text += f" ({what}: {', '.join(shown[:most] + more)})"
    minutes = choice.get("budget_minutes")
    return text if minutes is None else f"{text}; budget {minutes:g} min"
