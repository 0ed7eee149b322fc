"""Choose the device, CPU threads and kernels of a verb, and time its work there.

Options given before torch is loaded are stored, and take effect when a verb chooses its device.
Usage errors are therefore raised before torch is imported.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from genodiff.errors import MachineError, UsageError
from genodiff.io.process import count_default_threads, count_usable_cores, limit_threads

_pending: list[tuple[int | None, str | None]] = []  # threads, scan
_DEVICE = re.compile(r"auto|cpu|cuda(:(0|[1-9][0-9]*))?")
_TIMING = 1.0  # seconds
PROBE = 1 << 15
"""Bases that one timed step should read (or one window, if that is longer)."""


def prepare_machine(threads: int | None = None, scan: str | None = None) -> None:
    """Let the verbs of this process use `threads` CPU threads and the kernels of `scan`.

    The default is OMP_NUM_THREADS, or else one thread per usable core, and the device's best
    kernels. `threads` is capped at the number of cores. Both take effect when a device is next
    chosen. Raises `UsageError` for threads below 1.
    """
    if threads is not None and threads < 1:
        raise UsageError(f"--threads {threads} is below 1", fix="give 1 or more")
    _pending[:] = [(threads, scan)]


def choose_device(device: str = "auto", *, needs_torch: bool = True) -> str:
    """Resolve `device` to "cpu", "cuda" or a numbered GPU such as "cuda:1". Imports torch.

    Without `needs_torch`, "auto" is the CPU, and torch is imported for CUDA only.
    Raises `UsageError` for an unknown name and for kernels that do not run here, `MachineError` for
    a missing CUDA device.
    """
    kind, _, number = device.partition(":")
    if not _DEVICE.fullmatch(device):
        raise UsageError(f"no device '{device}'", fix="give auto, cpu, cuda or cuda:1")
    if not needs_torch and kind != "cuda":
        return use_cpu()
    _apply_pending()
    if device == "cpu":
        return device
    import torch

    if not torch.cuda.is_available():
        if device == "auto":
            return "cpu"
        what = f"--device {device}: torch sees no CUDA device here"
        raise MachineError(what, fix="use --device cpu, or see `genodiff doctor`")
    if number and int(number) >= torch.cuda.device_count():
        what = f"--device {device}: torch sees {torch.cuda.device_count()} CUDA devices here"
        raise MachineError(what, fix="give a smaller number")
    return "cuda" if device == "auto" else device


def count_jobs() -> int:
    """Count the jobs to run in parallel: the requested threads, or all usable cores."""
    return find_wanted_threads() or count_usable_cores()


def find_wanted_threads() -> int | None:
    """Return the requested threads until they are passed to torch; None if there are none."""
    return _pending[-1][0] if _pending else None


def use_cpu() -> str:
    """Compute on the CPU with the requested threads, without importing torch."""
    from genodiff.kernels.library import set_threads

    wanted = find_wanted_threads()
    threads = count_default_threads() if wanted is None else limit_threads(wanted)
    if threads is not None:
        set_threads(threads)
    return "cpu"


def _apply_pending() -> None:
    if not _pending:
        return
    import torch

    from genodiff.kernels.dispatch import prefer_provider

    threads, scan = _pending.pop()
    threads = count_default_threads() if threads is None else limit_threads(threads)
    if threads is not None:
        torch.set_num_threads(threads)
    prefer_provider(scan)


def time_steps(step: Callable[[], int]) -> float:
    """The seconds a unit of work takes; `step` works and counts them, after one to warm up."""
    began = time.perf_counter()
    step()
    limit = _TIMING if time.perf_counter() - began < _TIMING / 3 else 0.0
    began, done = time.perf_counter(), 0
    while not done or time.perf_counter() - began < limit:
        done += step()
    return (time.perf_counter() - began) / done
