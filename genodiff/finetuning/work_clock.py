"""Seconds of work: what a fit takes, without what it waited for a processor.

On a busy machine a fit that has one core to itself for half of the time takes twice as long.
Budgets and tables should not depend on that. So time on a CPU is the smaller of wall time and of
the processor time of the process. On a GPU, where the processor waits, it is wall time.
"""

import time


class WorkClock:
    """Counts seconds of work from now on, on top of `spent` ones; `device` is a device's type."""

    def __init__(self, spent: float = 0.0, device: str = "cpu") -> None:
        self._spent, self._on_cpu = spent, device == "cpu"
        self._wall, self._cpu = time.monotonic(), time.process_time()

    @property
    def seconds(self) -> float:
        """Seconds of work so far."""
        wall = time.monotonic() - self._wall
        if self._on_cpu:
            wall = min(wall, time.process_time() - self._cpu)
        return self._spent + wall
