"""What a run says while it runs, on stderr: a bar on a terminal, a line every so often in a pipe or
a log.
"""

import logging
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

_log = logging.getLogger("genodiff")
_FIRST, _LONGEST, _GROWTH = 2.0, 60.0, 1.5


class Reporter:
    """Shows step, loss in bits, pace and time to go."""

    def __init__(self, step: int, horizon: int | None, unit: str = "base") -> None:
        self._unit = unit
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._wait, self._last = _FIRST, time.monotonic()
        self._bits: float | None = None
        console = Console(stderr=True)
        if console.is_terminal and _log.isEnabledFor(logging.INFO):
            columns = (
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(),
                TimeElapsedColumn(),
            )
            self._bar = Progress(*columns, console=console, refresh_per_second=4, transient=True)
            self._task = self._bar.add_task("training", total=horizon, completed=step)
            self._bar.start()

    def step(
        self, step: int, horizon: int | None, bits: float, pace: float, left: float | None
    ) -> None:
        """After a step: `bits` per base of its windows, `pace` in bases per second, `left` seconds
        to go if known.
        """
        self._bits = bits if self._bits is None else 0.9 * self._bits + 0.1 * bits
        of = f"/{horizon}" if horizon is not None else ""
        eta = f"{clock(left)} to go" if left is not None else "time to go not known yet"
        text = f"step {step}{of} · loss {self._bits:.4f} bits · {pace:,.0f} tok/s · {eta}"
        if self._bar is not None:
            self._bar.update(self._task, description=text, completed=step, total=horizon)
        elif time.monotonic() - self._last >= self._wait:
            self._last, self._wait = time.monotonic(), min(_LONGEST, self._wait * _GROWTH)
            _log.info("%s", text)

    def valid(self, step: int, bits: float, interval: float) -> None:
        """After a validation."""
        _log.info("step %d · validation %.4f ± %.4f bits per %s", step, bits, interval, self._unit)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()


def clock(seconds: float) -> str:
    """A duration as a person reads it: 42 s, 12 min, 3 h 05 min."""
    whole = max(0, round(seconds))
    if whole < 100:
        return f"{whole} s"
    if whole < 6000:
        return f"{whole / 60:.0f} min"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
