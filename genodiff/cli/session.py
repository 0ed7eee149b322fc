"""What every command has, whatever its verb: threads, device, messages, and how it is stopped."""

import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Annotated, Literal

from annotated_types import Ge

from genodiff.errors import Interrupted
from genodiff.io.cache import place_library_caches
from genodiff.io.process import cut_environment
from genodiff.jobs.machine import prepare_machine
from genodiff.jobs.request import Option, Options


@dataclass(frozen=True, kw_only=True)
class MachineOptions(Options):
    """The options of every verb that computes."""

    threads: Annotated[
        int | None,
        Option("CPU threads (default: OMP_NUM_THREADS, else all cores of this process)."),
    ] = None
    device: Annotated[Literal["auto", "cpu", "cuda"], Option("Device.")] = "auto"
    scan: Annotated[
        str | None, Option("Selective scan: auto, native, torch, ... (see `genodiff doctor`).")
    ] = None
    offline: Annotated[bool, Option("Never access the network.", negative="--no-offline")] = False
    quiet: Annotated[bool, Option("Only errors on stderr.", ("--quiet", "-q"))] = False
    verbose: Annotated[bool, Option("More messages on stderr.", ("--verbose", "-v"))] = False
    seed: Annotated[int | None, Ge(0), Option("Random seed.")] = 1

    def prepare(self) -> None:
        """Set threads, kernels and logging for the verb to come, without importing torch."""
        prepare_machine(self.threads, self.scan)
        place_library_caches()
        level = logging.ERROR if self.quiet else logging.DEBUG if self.verbose else logging.INFO
        log = logging.getLogger("genodiff")
        log.setLevel(level)
        if not log.handlers:
            log.addHandler(_ToStderr())
            log.handlers[0].setFormatter(logging.Formatter("genodiff: %(message)s"))
            log.propagate = False
        cut_environment()


class _ToStderr(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to the `sys.stderr` of the moment, which a progress bar replaces with its own."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


@contextmanager
def stop_on_sigterm() -> Iterator[None]:
    """Let SIGTERM and Ctrl-C end the work as an error does, with a line that says what is left."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise _interrupted("SIGTERM", signum)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        raise _interrupted("Ctrl-C", signal.SIGINT) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupted(by: str, signum: int) -> Interrupted:
    return Interrupted(f"stopped by {by}", signum, fix="run the same command again")
