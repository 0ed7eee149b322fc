"""The number of steps of a run under a clock: decided seldom, written down, repeated exactly."""

import pytest

from genodiff.errors import CheckpointError
from genodiff.runs.folder import PLAN
from genodiff.runs.sections import TrainSettings
from genodiff.training.horizon import Plan, open_plan


def play(
    plan: Plan, pace: float, step: int = 0, seconds: float = 0.0, until: int | None = None
) -> tuple[int, float, list[int | None]]:
    """Steps of `pace` seconds until the plan says stop; the horizon that each step saw."""
    plan.begin(step, seconds)
    seen = []
    while not plan.finished(step) and step != until:
        seen.append(plan.horizon(step))
        step, seconds = step + 1, seconds + pace
        plan.watch(step, seconds)
    return step, seconds, seen


def test_a_run_under_a_clock_knows_its_length_early_and_keeps_to_the_clock(tmp_path):
    plan = open_plan(tmp_path, TrainSettings(max_minutes=2), 0, 0.0, None)
    step, seconds, seen = play(plan, 0.1)
    assert 0.95 * 120 < seconds <= 120
    assert abs(step - seen[100]) / step < 0.05
    assert seen[0] is None


def test_a_run_that_becomes_slower_still_ends_in_time(tmp_path):
    plan = open_plan(tmp_path, TrainSettings(max_minutes=2), 0, 0.0, None)
    step, seconds, _ = play(plan, 0.1, until=300)
    step, seconds, seen = play(plan, 0.3, step, seconds)
    assert 0.95 * 120 < seconds <= 120.3
    assert abs(step - seen[-1]) <= 1


def test_each_limit_holds(tmp_path):
    def end(name: str, pace: float, **limits: int) -> tuple[int, float]:
        return play(open_plan(tmp_path / name, TrainSettings(**limits), 0, 0.0, None), pace)[:2]

    assert end("a", 1.0, max_steps=7)[0] == 7
    assert end("b", 0.1, max_minutes=2, max_steps=9)[0] == 9
    assert end("c", 1.0, max_minutes=1, max_steps=99)[1] <= 60


def test_a_run_that_goes_on_makes_the_recorded_decisions_at_the_recorded_steps(tmp_path):
    settings = TrainSettings(max_minutes=2)
    plan = open_plan(tmp_path, settings, 0, 0.0, None)
    play(plan, 0.1)
    recorded = plan.decisions
    assert len(recorded) > 4
    again = open_plan(tmp_path, settings, 200, 20.0, None)
    _, _, seen = play(again, 0.37, 200, 20.0, until=recorded[-1][0] + 1)
    assert seen == [plan.horizon(step) for step in range(200, recorded[-1][0] + 1)]
    assert len(set(seen)) > 1


def test_a_raised_limit_is_a_decision_where_the_run_goes_on(tmp_path):
    plan = open_plan(tmp_path, TrainSettings(max_steps=10), 0, 0.0, None)
    raised = open_plan(tmp_path, TrainSettings(max_steps=40), 10, 5.0, plan.values())
    assert [raised.horizon(step) for step in (0, 9, 10, 39)] == [10, 10, 40, 40]
    again = open_plan(tmp_path, TrainSettings(max_steps=40), 20, 9.0, None)
    assert again.decisions == raised.decisions
    timed = open_plan(tmp_path, TrainSettings(max_minutes=1), 20, 10.0, None)
    assert timed.horizon(20) == 20 + int(50 * 0.98 / 0.5)


def test_before_the_first_step_a_new_limit_replaces_the_old_one(tmp_path):
    open_plan(tmp_path, TrainSettings(max_steps=10), 0, 0.0, None)
    assert open_plan(tmp_path, TrainSettings(max_minutes=1), 0, 0.0, None).decisions == []


def test_a_lost_record_is_taken_from_the_checkpoint(tmp_path):
    settings = TrainSettings(max_minutes=2)
    plan = open_plan(tmp_path, settings, 0, 0.0, None)
    play(plan, 0.1, until=300)
    (tmp_path / PLAN).unlink()
    assert open_plan(tmp_path, settings, 300, 30.0, plan.values()).decisions == plan.decisions


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"max_steps": 1, "max_seconds": null, "decisions": [{"step": "x"}]}']
)
def test_a_broken_record_is_named(tmp_path, text):
    (tmp_path / PLAN).write_text(text)
    with pytest.raises(CheckpointError, match=r"plan\.json"):
        open_plan(tmp_path, TrainSettings(max_steps=3), 2, 1.0, None)
