"""The beginning and the end of a process."""

import atexit
import io
import os
import sys
import threading

from genodiff.io.file_names import ERRORS


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
