"""The processor cores that this process may use, and how many threads it is to have."""

import os


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
