"""A process: its threads, cores and memory, how it begins and how it ends."""

import atexit
import ctypes
import io
import logging
import os
import platform
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from genodiff.io.file_kinds import ERRORS


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
    """Whether this process is the `genodiff` command; no other starts processes by itself."""
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

    That takes up to seconds once torch and lightning are loaded. What was registered for the end is
    done, and what was said is written. Returns where a thread that the interpreter would wait for
    still runs, and where the last words cannot be written: then the usual end is the right one.
    """
    if not all(t.daemon or t is threading.main_thread() for t in threading.enumerate()):
        return
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return
    os._exit(code)


THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS", "NUMEXPR_MAX_THREADS", "VECLIB_MAXIMUM_THREADS", "BLIS_NUM_THREADS",
    "POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "NUMBA_NUM_THREADS",
)  # fmt: skip
"""What libraries that genodiff loads take for their number of threads."""
_log = logging.getLogger("genodiff")


def count_usable_cores() -> int:
    """The cores that this process may use: all of the machine where the system sets no limit."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def count_default_threads() -> int | None:
    """The threads to use where nobody says how many: OMP_NUM_THREADS, else one for each core.

    None where the system has no set of cores for a process: there torch knows best.
    """
    wanted = _read_whole(os.environ.get("OMP_NUM_THREADS", ""))
    if wanted:
        return limit_threads(wanted, "OMP_NUM_THREADS=")
    return count_usable_cores() if hasattr(os, "sched_getaffinity") else None


def limit_threads(wanted: int, named: str = "--threads ") -> int:
    """As many of the `wanted` threads as the machine has cores, with a line where that is fewer."""
    cores = os.cpu_count() or 1
    if wanted <= cores:
        return wanted
    shown = f"{wanted:,}" if named.endswith(" ") else str(wanted)
    limit = f"{cores} cores" if cores > 1 else "one core"
    _log.warning("%s%s is cut to the %s of this machine", named, shown, limit)
    return cores


def cut_environment() -> None:
    """Cut the threads in the environment to the machine's cores, before libraries read them."""
    for name in THREAD_VARIABLES:
        given = os.environ.get(name, "")
        wanted = _read_whole(given)
        if not wanted and os.environ.pop(name, "").strip():
            _log.warning("%s=%s is no number of threads: it is not used", name, given[:20])
        if wanted and wanted > (os.cpu_count() or 1):
            os.environ[name] = str(limit_threads(wanted, f"{name}="))


def _read_whole(text: str) -> int:
    """The number that a variable begins with; 0 where it holds none."""
    text = text.partition(",")[0].strip()
    return int(text) if text.isascii() and text.isdecimal() else 0


def read_memory() -> tuple[int | None, int | None]:
    """(all, free) in bytes, within the container's limit; None where the system does not say."""
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        total, free = (int(lines[key].split()[0]) * 1024 for key in ("MemTotal", "MemAvailable"))
    except (OSError, KeyError, ValueError):
        return None, None
    try:
        bound = int(Path("/sys/fs/cgroup/memory.max").read_text())
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
    except (OSError, ValueError):
        return total, free
    return min(total, bound), min(free, max(0, bound - used))


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h
_MOST = 2**31 - 1
_LARGE = 2**26  # bytes; blocks from this size on are returned


def keep_freed_memory() -> bool:
    """Let this process keep what it frees, from now on; False if its C library cannot."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # musl has none
        return False
    mallopt.argtypes, mallopt.restype = [ctypes.c_int, ctypes.c_int], ctypes.c_int
    return bool(mallopt(_MMAP_THRESHOLD, _LARGE)) and bool(mallopt(_TRIM_THRESHOLD, _MOST))
