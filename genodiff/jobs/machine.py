"""Where a verb computes, device, threads and kernels, and how long its work takes there.

What is asked for before torch is loaded is remembered, and takes effect when a verb chooses its
device. So a usage error of a verb comes before torch is imported.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from genodiff.errors import MachineError, UsageError
from genodiff.io.process import count_default_threads, count_usable_cores, limit_threads


class _Wanted(NamedTuple):
    threads: int | None
    scan: str | None


_pending: list[_Wanted] = []
_TIMING = 1.0  # seconds
PROBE = 1 << 15
"""Bases of one step, or one window, of what is timed."""


def prepare_machine(threads: int | None = None, scan: str | None = None) -> None:
    """Let the verbs of this process use `threads` CPU threads and the kernels of `scan`.

    None means OMP_NUM_THREADS, else as many as the cores that the process may use, and the best
    kernels of the device. More threads than the machine has cores are cut to these. It takes effect
    when a device is next chosen. Raises `UsageError` for threads below 1.
    """
    if threads is not None and threads < 1:
        raise UsageError(f"--threads {threads} is below 1", fix="give 1 or more")
    _pending[:] = [_Wanted(threads, scan)]


def choose_device(device: str = "auto", *, needs_torch: bool = True) -> str:
    """The device that `device` means here: "cpu", "cuda" or "cuda:1". Imports torch.

    Without `needs_torch` "auto" is the CPU, and torch is imported for CUDA alone.
    Raises `UsageError` for another name and for kernels that do not run here, `MachineError` for a
    CUDA device that is not there.
    """
    kind, _, number = device.partition(":")
    if device not in ("auto", "cpu") and (kind != "cuda" or (number and not number.isdecimal())):
        raise UsageError(f"no device '{device}'", fix="give auto, cpu or cuda")
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
    """How many pieces of work run at a time: the threads that were asked for, else all cores."""
    return find_wanted_threads() or count_usable_cores()


def find_wanted_threads() -> int | None:
    """The threads that were asked for, and not yet given to torch."""
    return _pending[-1].threads if _pending else None


def use_cpu() -> str:
    """Let the kernels use the threads that were asked for, on the CPU, without importing torch."""
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
    """Seconds of one unit: `step` does some work and says how many units it was.

    The first step warms up; the others go on for about a second, but after a long first one there
    is one.
    """
    began = time.perf_counter()
    step()
    limit = _TIMING if time.perf_counter() - began < _TIMING / 3 else 0.0
    began, done = time.perf_counter(), 0
    while not done or time.perf_counter() - began < limit:
        done += step()
    return (time.perf_counter() - began) / done
