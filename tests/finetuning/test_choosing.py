"""Choices by validation: halving, equals, failures. The test part is read once for each frozen
choice (line, seed), and never while anything is chosen: what is handed out is counted.
"""

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genodiff.errors import GenodiffError
from genodiff.finetuning import choosing, scored_unit, workers
from genodiff.finetuning import sweep as sweeping
from genodiff.finetuning.choosing import (
    LEAST_STEPS,
    Choice,
    choose_candidate,
    find_shares,
    list_choosing_seeds,
)
from genodiff.finetuning.model_words import list_baselines
from genodiff.finetuning.sweep import SweepPlan, sweep
from genodiff.finetuning.unit import read_results
from genodiff.tasks import data_request
from genodiff.tasks.data_request import DataRequest
from genodiff.tasks.task import TaskData
from tests.finetuning.motif_task import write_tables
from tests.finetuning.test_baselines import motif_examples
from tests.finetuning.test_sweep import plan_of

SHARES = (0.25, 1.0)


def choose(values: list[float], metric: str = "accuracy") -> Choice:
    """A choice among candidates whose value does not depend on the share."""
    return choose_candidate(values, lambda value, share: (value, 60 * share), metric, SHARES)


def test_all_are_tried_in_short_and_the_best_few_in_full():
    found = choose([0.1, 0.5, 0.9, 0.7])
    assert found.candidate == 2
    assert [t.candidate for t in found.trials if t.share < 1] == [0, 1, 2, 3]
    assert [t.candidate for t in found.trials if t.share == 1] == [2, 3]
    assert choose([0.1, 0.5, 0.9], metric="mse").candidate == 0
    assert choose([0.9, 0.9, 0.9]).candidate == 0  # of equals the simplest


def test_a_short_fit_that_misleads_is_corrected_by_the_whole_one():
    curves = {"slow": {0.25: 0.6, 1.0: 0.9}, "fast": {0.25: 0.7, 1.0: 0.8}, "no": {0.25: 0.5}}
    names = ["no", "fast", "slow"]
    found = choose_candidate(names, lambda name, share: (curves[name][share], 1.0), "mcc", SHARES)
    assert found.candidate == 2


def test_what_fails_is_not_chosen():
    assert choose([math.nan, 0.4, 0.3]).candidate == 1
    assert choose([math.nan, math.nan, 0.3]).candidate == 2
    with pytest.raises(GenodiffError, match="all settings failed"):
        choose([math.nan, math.nan])


def test_a_whole_fit_that_failed_leaves_the_choice_to_short_ones():
    def evaluate(value: float, share: float) -> tuple[float, float]:
        return (math.nan if share == 1 and value == 0.9 else value), 1.0

    assert choose_candidate([0.1, 0.7, 0.9], evaluate, "mcc", SHARES).candidate == 2


@pytest.mark.parametrize("steps", [1, 300, 600, 1_900, 2_100, 5_000, 10_000, 1_000_000])
def test_short_fits_are_tried_at_larger_shares(steps):
    shares = find_shares(steps)
    assert list(shares) == sorted(set(shares))
    assert shares[0] > 0
    assert shares[-1] <= 1
    for share, least in zip(shares, LEAST_STEPS, strict=False):
        assert share * steps >= min(least, steps) - 1e-9
    assert (steps > LEAST_STEPS[0]) == (shares[0] < 1)
    if steps >= 10_000:
        assert shares == (0.1, 0.35)


def test_more_seeds_choose_where_a_seed_has_few_validation_examples():
    task, train = motif_examples(120)  # 12 of them validate
    data = TaskData(task, train, train, "official")
    assert list(list_choosing_seeds(data, 1)) == [1, 2, 3, 4, 5]
    assert list(list_choosing_seeds(data._replace(valid_index=np.arange(12)), 1)) == [1]
    assert list(list_choosing_seeds(data._replace(train=motif_examples(1_000)[1]), 1)) == [1]


SCRATCH = "scratch:caduceus-ph-tiny"


class CountedPart:
    """A test part that says who reads it. Taking nothing of it is no read."""

    def __init__(self, part: Any, note: Callable[[], None]) -> None:
        self._part, self._note = part, note

    def take(self, rows: Any) -> Any:
        """Some of the examples."""
        if len(rows):
            self._note()
        return self._part.take(rows)

    def __getattr__(self, name: str) -> Any:
        self._note()
        return getattr(self._part, name)


class Readers:
    """What runs now, and how often the test part was read for each frozen choice.

    Reads are allowed before any fit, for the task's audit, and while a unit is scored.
    """

    def __init__(self) -> None:
        self.running = ["choosing"]
        self.scored: Counter[str] = Counter()
        self.read: set[str] = set()

    def note(self) -> None:
        """The test part is read."""
        what = self.running[-1]
        assert what == "summary" or what in self.scored, f"the test part was read while {what}"
        self.read.add(what)

    def wrap(self, what: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, with reads put to the account of `what`, or of the unit that is scored."""

        def run(*given: Any, **more: Any) -> Any:
            name = given[0].key if what == "scoring" else what
            self.scored[name] += what == "scoring"
            self.running.append(name)
            try:
                return call(*given, **more)
            finally:
                self.running.pop()

        return run


@pytest.fixture
def readers(monkeypatch):
    found, load = Readers(), DataRequest.load

    def load_counted(self: DataRequest, name: str) -> Any:
        data = load(self, name)
        return data._replace(test=CountedPart(data.test, found.note))

    monkeypatch.setattr(DataRequest, "load", load_counted)
    monkeypatch.setattr(choosing, "FEW", 4)
    for place, name, what in (
        (sweeping, "summarise_task", "summary"),
        (sweeping, "measure_seen_tests", "summary"),
        (scored_unit, "fit_unit", "fitting"),
        (workers, "fit_unit", "fitting"),
        (scored_unit, "score_unit", "scoring"),
    ):
        monkeypatch.setattr(place, name, found.wrap(what, getattr(place, name)))
    data_request.load_cached.cache_clear()
    yield found
    data_request.load_cached.cache_clear()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return write_tables(tmp_path_factory.mktemp("reads"), 40, 20, (30, 40), ("without", "with"))


def check_sweep(plan: SweepPlan, out: Path, readers: Readers) -> list[dict[str, Any]]:
    """The rows of a sweep: each was scored once, and reads the test part."""
    rows = sweep(plan, out)
    assert dict(+readers.scored) == {row["key"]: 1 for row in rows}
    assert readers.read - {"summary"} == {row["key"] for row in rows}
    return rows


OVER = {"epochs": 1, "batch_size": 16, "lr": 1e-2}


def test_networks_are_chosen_without_the_test_part(home, readers):
    plan = plan_of(home, [SCRATCH], over=OVER, choose_head=True)
    rows = check_sweep(plan, home / "networks", readers)
    assert len(rows) == 2
    assert all(row["choices"][0]["trials"] for row in rows)


@pytest.mark.slow
def test_baselines_are_fitted_without_the_test_part(home, readers):
    words = [name for name in list_baselines("dna") if not name.startswith("lookup")]
    rows = check_sweep(plan_of(home, words), home / "baselines", readers)
    assert {row["model"] for row in rows} == set(words)


@pytest.mark.slow
def test_a_sweep_that_goes_on_does_not_read_the_test_part_again(home, readers, monkeypatch):
    words = [SCRATCH, "kmer-lr", "majority"]
    plan = plan_of(home, words, over=OVER, choose_head=True)
    score = scored_unit.score_unit

    def stop_after_three(*given: Any, **more: Any) -> Any:
        if sum(readers.scored.values()) == 3:
            raise KeyboardInterrupt
        return score(*given, **more)

    monkeypatch.setattr(scored_unit, "score_unit", stop_after_three)
    with pytest.raises(KeyboardInterrupt):
        sweep(plan, home / "stopped")
    monkeypatch.setattr(scored_unit, "score_unit", score)
    check_sweep(plan, home / "stopped", readers)
    assert len(read_results(home / "stopped")) == 6
    check_sweep(plan, home / "stopped", readers)  # done: nothing is scored or read again


def test_a_read_out_of_turn_is_noticed(home, readers):
    data = plan_of(home, ["majority"]).request.load("motif")
    with pytest.raises(AssertionError, match="was read while choosing"):
        data.test.labels.sum()
    assert scored_unit.remove_test(data).test.n == 0
