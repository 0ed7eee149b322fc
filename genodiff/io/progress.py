"""Progress on stderr: a bar on a terminal, a line every so often in a pipe or a log.

The first line comes after 2 s. Each wait is half as long again as the one before, at most a minute.
"""

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

_log = logging.getLogger("genodiff")
_FIRST, _LONGEST, _GROWTH = 2.0, 60.0, 1.5


def is_on_screen() -> bool:
    """Whether a bar would be seen: stderr, which a service may lack, is a terminal."""
    # Not rich's `is_terminal`: it is true under FORCE_COLOR too, where stderr is a pipe
    there = sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()
    return there and _log.isEnabledFor(logging.INFO)


@contextmanager
def say_slow(text: str) -> Iterator[None]:
    """Report `text` once if the block takes longer than 2 s, as drawing a large page does."""
    waiting = threading.Timer(_FIRST, _log.info, ("%s ...", text))
    waiting.daemon = True
    waiting.start()
    try:
        yield
    finally:
        waiting.cancel()


class ProgressDisplay:
    """Shows how far one piece of work is, from its first report until it is closed."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._began = self._last = time.monotonic()
        self._wait = _FIRST
        if is_on_screen():
            text, console = TextColumn("{task.description}", markup=False), Console(stderr=True)
            columns = (SpinnerColumn(), text, BarColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=console, refresh_per_second=4, transient=True)
            self._task = self._bar.add_task("")

    def show(self, text: str, done: float = 0.0, total: float | None = None) -> None:
        """Report that `done` of `total` is done; `total` None where that is not known."""
        if self._bar is not None:
            self._bar.start()
            self._bar.update(self._task, description=text, completed=done, total=total)
        elif time.monotonic() - self._last >= self._wait:
            self._last, self._wait = time.monotonic(), min(_LONGEST, self._wait * _GROWTH)
            _log.info("%s", text)

    def show_batches(self, done: int, total: int) -> None:
        """Report that `done` of `total` batches are scored; the first is not timed."""
        if done == 1:
            self._began = time.monotonic()
        text = f"scored {done} of {total} batches"
        if done > 1:
            left = (time.monotonic() - self._began) / (done - 1) * (total - done)
            text += f" · {format_duration(left)} to go"
        self.show(text, done, total)
        if done == total:
            self.close()

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def format_duration(seconds: float) -> str:
    """A duration as a person reads it: 42 s, 12 min, 3 h 05 min."""
    whole = max(0, round(seconds))
    if whole < 100:
        return f"{whole} s"
    if whole < 6000:
        return f"{whole / 60:.0f} min"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
