"""How many steps a run has, where a time is given: decisions that are written down.

The learning rate needs the number of steps to come. Under `max_minutes` nobody knows it beforehand,
and a rate that followed the clock could never be resumed exactly. So the clock is read at a few
marks only; each time the number of steps that will fit is worked out and recorded as (step,
horizon), in `plan.json`, before any step depends on it. The horizon in force at a step is that of
the newest decision at or before it: a function of the record alone. A run that goes on from a
checkpoint finds the decisions made after it and makes the same ones at the same steps.

`max_steps` is a decision at step 0. Raising a limit later is a decision at the step where the run
goes on: from there the learning rate follows the schedule of the new length.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from genodiff.errors import CheckpointError
from genodiff.io import atomic
from genodiff.runs.folder import PLAN
from genodiff.runs.sections import TrainSettings

MARKS = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Shares of `max_minutes` at which the number of steps is worked out anew."""

_FIRST_STEPS, _FIRST_SECONDS = 5, 5.0
_MARGIN = 0.98


@dataclass
class Plan:
    """The limits and the decisions made under them."""

    max_steps: int | None
    max_seconds: float | None
    decisions: list[tuple[int, int]] = field(default_factory=list)
    path: Path | None = None
    _since: tuple[int, float] = (0, 0.0)
    _warm: bool = False

    def horizon(self, step: int) -> int | None:
        """The planned steps, as known after `step` steps; None before the first decision."""
        known = [horizon for at, horizon in self.decisions if at <= step]
        return known[-1] if known else None

    def finished(self, step: int) -> bool:
        """Whether the run is at its end after `step` steps."""
        horizon = self.horizon(step)
        return horizon is not None and step >= horizon

    def begin(self, step: int, seconds: float) -> None:
        """Start measuring the pace, after `step` steps and `seconds` of training."""
        self._since, self._warm = (step, seconds), False

    def watch(self, step: int, seconds: float) -> None:
        """Make the decision that is due after `step` steps and `seconds` of training, if one is.

        The pace is measured since `begin` or the mark before; a session's first, slow step is left
        out.
        """
        if (
            self.max_seconds is None
            or self.finished(step)
            or any(at >= step for at, _ in self.decisions)
        ):
            return
        done, elapsed = step - self._since[0], seconds - self._since[1]
        pace = elapsed / done
        if seconds + pace / 2 >= self.max_seconds:
            self.decide(step, step)
        elif not self._warm:
            self._since, self._warm = (step, seconds), True
        elif not any(at for at, _ in self.decisions):
            if done >= _FIRST_STEPS and elapsed >= min(_FIRST_SECONDS, self.max_seconds / 4):
                self.decide(step, step + self._fits(seconds, pace))
        elif any(self._since[1] < mark * self.max_seconds <= seconds for mark in MARKS):
            self.decide(step, step + self._fits(seconds, pace))
            self._since = (step, seconds)

    def _fits(self, seconds: float, pace: float) -> int:
        assert self.max_seconds is not None
        return max(1, int((self.max_seconds - seconds) * _MARGIN / pace))

    def decide(self, step: int, horizon: int) -> None:
        """Record that `horizon` steps are planned from `step` on, and write the record down."""
        horizon = horizon if self.max_steps is None else min(horizon, self.max_steps)
        self.decisions = [d for d in self.decisions if d[0] < step] + [(step, horizon)]
        self.write()

    def values(self) -> dict[str, Any]:
        """The record as plain values."""
        return {
            "max_steps": self.max_steps,
            "max_seconds": self.max_seconds,
            "decisions": [{"step": step, "horizon": horizon} for step, horizon in self.decisions],
        }

    def write(self) -> None:
        """Write the record, where the plan has a file."""
        if self.path is not None:
            atomic.write_json(self.path, self.values())


def parse(values: Any, path: Path) -> Plan:
    """The plan in `values`, or (None) in the file. Raises `CheckpointError` naming `path`."""
    try:
        values = json.loads(path.read_text(encoding="utf-8")) if values is None else values
        decisions = [(int(d["step"]), int(d["horizon"])) for d in values["decisions"]]
        if decisions != sorted(decisions) or any(step < 0 for step, _ in decisions):
            raise ValueError("the decisions are not in order")
        return Plan(values["max_steps"], values["max_seconds"], decisions, path)
    except (KeyError, OSError, TypeError, ValueError) as fault:
        fix = "remove it; the checkpoint has a copy"
        raise CheckpointError(f"is no plan: corrupt ({fault})", file=path, fix=fix) from None


def open_plan(
    run: Path,
    settings: TrainSettings,
    step: int,
    seconds: float,
    saved: Any,
    *,
    record: bool = True,
) -> Plan:
    """The plan to follow from `step` on: the recorded one, under today's limits.

    The record is `plan.json`, else the checkpoint's. Where a limit has changed since it was
    recorded, what was decided beyond `step` no longer holds. Without `record` nothing is written:
    of several processes one keeps the record.
    """
    path = run / PLAN
    seconds_in_all = None if settings.max_minutes is None else 60 * settings.max_minutes
    now = Plan(settings.max_steps, seconds_in_all, [], path if record else None)
    kept = None
    if path.is_file() or saved is not None:
        kept = parse(None if path.is_file() else saved, path)
    if kept and (kept.max_steps, kept.max_seconds) == (now.max_steps, now.max_seconds):
        now.decisions = kept.decisions
        return now
    now.decisions = [d for d in kept.decisions if step > 0 and d[0] <= step] if kept else []
    if now.max_steps is not None and (now.max_seconds is None or not step):
        now.decide(step, now.max_steps)
    elif now.max_seconds is not None and now.decisions:
        left = now.max_seconds > seconds
        now.decide(step, step + now._fits(seconds, seconds / step) if left else step)
    else:
        now.write()
    return now
