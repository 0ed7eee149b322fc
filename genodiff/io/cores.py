"""The processor cores that this process may use."""

import os


def count_usable_cores() -> int:
    """The cores that this process may use: all of the machine where the system sets no limit."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
