"""The beginning and the end of a process."""

import atexit
import io
import os
import platform
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from genodiff.io.file_names import ERRORS


@contextmanager
def leave_script_out() -> Iterator[None]:
    """Let processes that are spawned here import genodiff alone, not the caller's script.

    `multiprocessing` would run the script again in each of them, so a script without
    `if __name__ == "__main__"` would start processes without end.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def is_command_line() -> bool:
    """Whether this process is the `genodiff` command: what else imports genodiff starts no process
    that nobody asked for.
    """
    return "genodiff.cli" in sys.modules


def read_processor() -> str:
    """The processor's name, or its kind. `platform.processor` would start `uname`."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.machine()


def open_missing_streams() -> None:
    """Send to nowhere what a process says that was started with stdout or stderr closed.

    Python has None there, and the next file that is opened would get their number. What the
    encoding of stdout lacks is escaped, as Python does for stderr.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=ERRORS)


def end_process(code: int) -> None:
    """End this process with `code`, without taking its modules down one by one.

    That takes up to seconds once torch and lightning are loaded, and nothing of genodiff waits for
    it: what was registered to be done at the end is done, and what was said is written. Returns
    where a thread that the interpreter would wait for still runs, and where the last words cannot
    be written: then the usual end is the right one.
    """
    alone = all(t.daemon or t is threading.main_thread() for t in threading.enumerate())
    if not alone:
        return
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return
    os._exit(code)
