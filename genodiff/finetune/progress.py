"""What a sweep says while it runs, on stderr: a bar on a terminal, a line every so often in a pipe
or a log.
"""

import logging
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from genodiff.finetune.fit import Tick
from genodiff.finetune.unit import Unit
from genodiff.train.progress import clock

_log = logging.getLogger("genodiff")
_FIRST, _LONGEST, _GROWTH = 2.0, 60.0, 1.5


class SweepProgress:
    """How many units are done, where the running ones are, how long is left. `cost` weighs the
    units, by key.
    """

    def __init__(self, total: int, cost: dict[str, float], done: set[str]) -> None:
        self._total, self._cost, self._done = total, cost, set(done)
        self._share: dict[str, float] = {}
        self._began, self._last, self._wait = time.monotonic(), time.monotonic(), _FIRST
        self._before = sum(cost.get(key, 0.0) for key in done)
        self._bar: Progress | None = None
        console = Console(stderr=True)
        if console.is_terminal and _log.isEnabledFor(logging.INFO) and total:
            columns = (
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                TimeElapsedColumn(),
            )
            self._bar = Progress(*columns, console=console, refresh_per_second=4, transient=True)
            self._task = self._bar.add_task("fine-tuning", total=1.0)
            self._bar.start()

    def tick(self, unit: Unit, tick: Tick) -> None:
        """After a step of a unit."""
        new = unit.key not in self._share
        self._share[unit.key] = tick.step / max(1, tick.steps)
        if (
            new and tick.step > 1
        ):  # what was done in an earlier session did not take time in this one
            self._before += self._share[unit.key] * self._cost.get(unit.key, 0.0)
        valid = "" if tick.valid is None else f", validation {tick.valid:.3f}"
        self._say(f"{_name(unit)}: epoch {tick.epoch + 1}/{tick.epochs}{valid}")

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
        self._say(_name(unit))

    def _left(self) -> str:
        whole = sum(self._cost.values()) or 1.0
        share = sum(self._cost.get(key, 0.0) for key in self._done) + sum(
            s * self._cost.get(k, 0.0) for k, s in self._share.items()
        )
        now = share - self._before
        eta = (
            ""
            if now <= 0
            else f", {clock((time.monotonic() - self._began) * (whole - share) / now)} to go"
        )
        if self._bar is not None:
            self._bar.update(self._task, completed=min(1.0, share / whole))
        return f"{len(self._done)}/{self._total} units{eta}"

    def _say(self, what: str) -> None:
        if self._bar is not None:
            self._bar.update(self._task, description=f"{self._left()} · {what}")
        elif time.monotonic() - self._last >= self._wait:
            self._last, self._wait = time.monotonic(), min(_LONGEST, self._wait * _GROWTH)
            _log.info("%s · %s", self._left(), what)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()


def _name(unit: Unit) -> str:
    return f"{unit.task} {unit.model.name} seed {unit.seed}"
