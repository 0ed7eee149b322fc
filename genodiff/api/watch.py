"""How training runs stand: `genodiff watch`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from genodiff.errors import UsageError
from genodiff.runs.run_paths import locate

if TYPE_CHECKING:
    from genodiff.runs.progress_reader import Progress


def watch(*runs: str | Path, interval: float = 2.0) -> Iterator[list[Progress]]:
    """How the runs stand, now and every `interval` seconds, until none is in training.

    Each `Progress` has `steps`, `loss` and `valid` (bits), `seconds`, `tokens`, `horizon` and
    `state`. Folders are read, never locked. Raises `UsageError` for a folder that holds no run.
    """
    import time

    from genodiff.runs.progress_reader import ProgressReader

    if not runs:
        raise UsageError("no run to watch", fix="give run folders: genodiff watch runs/x")
    if interval <= 0:
        raise UsageError(f"--interval {interval:g} is not above 0", fix="give seconds, such as 2")
    readers = [ProgressReader(locate(run, there=False)) for run in runs]
    while True:
        found = [reader.read() for reader in readers]
        yield found
        if not any(one.trainer for one in found):
            return
        time.sleep(interval)
