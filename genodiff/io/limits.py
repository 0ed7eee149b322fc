"""What of this machine the process may use: its cores, its threads, its memory."""

import logging
import os
from pathlib import Path

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
    """As many of the `wanted` threads as the machine has cores, with a line where that is fewer.

    More are never faster, and far more of them end the process.
    """
    cores = os.cpu_count() or 1
    if wanted <= cores:
        return wanted
    shown = f"{wanted:,}" if named.endswith(" ") else str(wanted)
    _log.warning("%s%s is cut to the %s of this machine", named, shown, _count_cores(cores))
    return cores


def cut_environment() -> None:
    """Cut the numbers of threads in the environment to the machine, with a line for each.

    Libraries read them when they are loaded, so it is done before that.
    """
    for name in THREAD_VARIABLES:
        wanted = _read_whole(os.environ.get(name, ""))
        if wanted and wanted > (os.cpu_count() or 1):
            os.environ[name] = str(limit_threads(wanted, f"{name}="))


def _read_whole(text: str) -> int:
    """The number that a variable begins with; 0 where it holds none."""
    text = text.partition(",")[0].strip()
    return int(text) if text.isascii() and text.isdecimal() else 0


def _count_cores(cores: int) -> str:
    return f"{cores} cores" if cores > 1 else "one core"


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
