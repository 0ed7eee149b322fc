"""The memory of this machine that the process may use."""

from pathlib import Path


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
