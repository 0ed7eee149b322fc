"""What a fine-tuning sweep reports on stderr while it runs."""

import logging
import time
from typing import Any

from genodiff.finetuning.fit import Tick
from genodiff.finetuning.unit import Unit
from genodiff.io.progress import ProgressDisplay, format_duration

_log = logging.getLogger("genodiff")


class SweepProgress:
    """Shows how many units are done, where the running ones are, and the time to go."""

    def __init__(self, total: int, cost: dict[str, float], done: set[str]) -> None:
        """`cost` weighs the units, by key; `done` are those that need not run."""
        self._total, self._cost, self._done = total, cost, set(done)
        self._share: dict[str, float] = {}
        self._began = time.monotonic()
        self._before = sum(cost.get(key, 0.0) for key in done)
        self._display = ProgressDisplay()

    def tick(self, unit: Unit, tick: Tick) -> None:
        """After a step of a unit."""
        new = unit.key not in self._share
        self._share[unit.key] = tick.step / max(1, tick.steps)
        # What was done in an earlier session did not take time in this one.
        if new and tick.step > 1:
            self._before += self._share[unit.key] * self._cost.get(unit.key, 0.0)
        valid = "" if tick.valid is None else f", validation {tick.valid:.3f}"
        self._show(f"{_name(unit)}: epoch {tick.epoch + 1}/{tick.epochs}{valid}")

    def done(self, unit: Unit, row: dict[str, Any] | None) -> None:
        """After a unit."""
        self._share.pop(unit.key, None)
        self._done.add(unit.key)
        if row is not None and row["value"] is not None:
            _log.info(
                "%s: %s %.4f on %d test examples (%s)",
                _name(unit),
                row["metric"],
                row["value"],
                row["n_test"],
                self._left(),
            )
        self._show(_name(unit))

    def _share_done(self) -> tuple[float, float]:
        """(cost that is done, cost of all)."""
        done = sum(self._cost.get(key, 0.0) for key in self._done)
        running = sum(part * self._cost.get(key, 0.0) for key, part in self._share.items())
        return done + running, sum(self._cost.values()) or 1.0

    def _left(self) -> str:
        share, whole = self._share_done()
        now = share - self._before
        text = f"{len(self._done)}/{self._total} units"
        if now <= 0:
            return text
        left = (time.monotonic() - self._began) * (whole - share) / now
        return f"{text}, {format_duration(left)} to go"

    def _show(self, what: str) -> None:
        share, whole = self._share_done()
        self._display.show(f"{self._left()} · {what}", min(1.0, share / whole), 1.0)

    def close(self) -> None:
        """Take the bar away."""
        self._display.close()


def _name(unit: Unit) -> str:
    return f"{unit.task} {unit.model.name} seed {unit.seed}"
