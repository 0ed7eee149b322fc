"""Signals set a flag; the loop looks at it at every step's end. A second Ctrl-C stops at once."""

import os
import signal
import sys
import threading
from types import FrameType
from typing import Any, Self

_WATCHED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")


class Signals:
    """A context in which signals ask the run to save and stop.

    They are SIGINT, SIGTERM, SIGHUP and SIGUSR1; ignored ones stay ignored.
    """

    def __init__(self) -> None:
        self.caught: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for name in _WATCHED:
                number = getattr(signal, name, None)
                if number is not None and signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._before[number] = signal.getsignal(number)
            self.install()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def install(self) -> None:
        """Set the handlers; again, where another library has set its own meanwhile."""
        for number in self._before:
            signal.signal(number, self._catch)

    def _catch(self, number: int, _: FrameType | None) -> None:
        if self.caught is not None and number == signal.SIGINT:
            os.write(2, b"genodiff: stopped at once; the last checkpoint stands\n")
            os._exit(128 + number)
        if self.caught is None:
            self.caught = signal.Signals(number)
            message = f"genodiff: {self.caught.name}: saving after this step "
            message += "(Ctrl-C again: stop at once)\n"
            os.write(sys.__stderr__.fileno() if sys.__stderr__ is not None else 2, message.encode())


def ignore_signals(_: int = 0) -> None:
    """In a worker process: leave signals to the parent, which ends its workers itself."""
    for name in ("SIGINT", "SIGHUP", "SIGUSR1"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
