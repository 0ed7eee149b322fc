"""What of this machine the process may use: its cores, its threads, its memory."""

import os
from pathlib import Path


def count_usable_cores() -> int:
    """The cores that this process may use: all of the machine where the system sets no limit."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def count_default_threads() -> int | None:
    """The threads to use where nobody says how many: OMP_NUM_THREADS, else one for each core.

    None where the system has no set of cores for a process: there torch knows best.
    """
    wanted = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    return count_usable_cores() if hasattr(os, "sched_getaffinity") else None


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
