"""How long the counted lines of an evaluation take, and which of them a limit of time leaves.

The seconds are those of one core of a common server; they are told as "about". What is kept in the
cache costs nothing.
"""

import logging
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.data.dna_windows import DnaWindows
from genodiff.data.store import Store
from genodiff.evaluation.contigs import find_spans
from genodiff.evaluation.lines import (
    KEPT,
    STAGES,
    can_run_adaptive,
    find_read_windows,
    identify_line,
    is_quick,
)
from genodiff.io.kept_arrays import is_kept
from genodiff.io.progress import ProgressDisplay, format_duration
from genodiff.statistics.counted_lines import LINES

_MARKOV, _MARKOV_BASE = 3.0, 0.15e-6
_ADAPTIVE = 1.1e-6
_SHARE = 0.5
"""The part of a limit that the lines may have; the network has the rest."""
_TOLD = 10.0  # seconds that are worth a line
log = logging.getLogger("genodiff")


class LinePlan(NamedTuple):
    """Which lines are counted, and the seconds that each stage of it takes."""

    markov: bool
    """False: none is counted."""
    mixture: bool | None
    """As it was asked for; False where it is left out."""
    seconds: dict[str, float]

    @property
    def total(self) -> float:
        """Seconds of all stages."""
        return sum(self.seconds.values())


def plan_lines(
    windows: DnaWindows, train: Store | None, mixture: bool | None, minutes: float | None = None
) -> LinePlan:
    """The lines of a train split on these windows, as far as a limit of `minutes` leaves them.

    Of more windows than will be scored the seconds are a little too many. `mixture` True is asked
    for, and is counted whatever it takes; None is where it takes little time.
    """
    if train is None:
        return LinePlan(False, False, {})
    markov = _MARKOV + _MARKOV_BASE * train.splits.intervals["train"].n_bases
    mixed = mixture or (mixture is None and is_quick(windows, count_known_bases(train)))
    plan = LinePlan(
        True, mixture, {"markov": markov} | (estimate_mixtures(windows, train) if mixed else {})
    )
    if minutes is None or mixture:
        return plan
    limit = 60 * minutes * _SHARE
    told = f"of the {format_duration(60 * minutes)} that --max-minutes gives"
    if markov > limit:
        log.warning("skipping the baselines, which take about %s %s", format_duration(markov), told)
        return LinePlan(False, False, {})
    if plan.total > limit:
        more = format_duration(plan.total - markov)
        log.warning(
            "skipping the mixtures, which take about %s %s; --mixture counts them", more, told
        )
        return LinePlan(True, False, {"markov": markov})
    return plan


def estimate_mixtures(windows: DnaWindows, store: Store) -> dict[str, float]:
    """Seconds to count each of the mixtures on these windows; of what is kept, none."""
    if not can_run_adaptive(windows, store):
        return {}
    bases = sum(store.splits.intervals[split].n_bases for split in ("train", "valid"))
    bases += sum(end - start for start, end, _ in find_spans(windows))
    whole = find_read_windows(windows)[0]
    return {
        name: 0.0 if is_kept(KEPT, identify_line(name, whole, store)) else _ADAPTIVE * bases
        for name in STAGES[1:]
    }


def count_known_bases(store: Store) -> int:
    """The bases of the train split that are no N."""
    runs = store.n_runs
    upto = np.concatenate([[0], np.cumsum(runs[:, 1] - runs[:, 0])])
    train = store.splits.intervals["train"]

    def count_before(place: NDArray[np.int64]) -> NDArray[np.int64]:
        number = np.searchsorted(runs[:, 0], place, "right")
        over = np.append(0, runs[:, 1])[number] - place
        known: NDArray[np.int64] = upto[number] - np.maximum(over, 0)
        return known

    start = store.offsets[train.contig] + train.start
    end = store.offsets[train.contig] + train.end
    return train.n_bases - int((count_before(end) - count_before(start)).sum())


def make_clock(plan: LinePlan, display: ProgressDisplay) -> Callable[[str], None]:
    """Tell how long the counting of lines takes; the function tells it of a stage that begins.

    That is how long it is to the end, at the pace of the stages before.
    """
    began = time.monotonic()
    if plan.total < _TOLD:
        return lambda stage: None
    shown = format_duration(plan.total)
    log.info("counting the baselines, about %s; --no-baselines leaves them out", shown)

    def begin(stage: str) -> None:
        done = sum(plan.seconds.get(name, 0.0) for name in STAGES[: STAGES.index(stage)])
        pace = (time.monotonic() - began) / done if done else 1.0
        left = format_duration((plan.total - done) * pace)
        line = next((line.title for line in LINES if line.name == stage), "Markov lines")
        display.show(f"counting: {line} · {left} to go", done, plan.total or None)

    return begin
