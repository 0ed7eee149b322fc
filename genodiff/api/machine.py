"""Where a verb computes: device, threads and kernels."""

from __future__ import annotations

import os
from typing import Literal

from genodiff.errors import MachineError, UsageError

Device = Literal["auto", "cpu", "cuda"]


def choose_device(device: str = "auto") -> str:
    """The device that `device` means here: "cpu", "cuda" or "cuda:1".

    Raises `UsageError` for another name, `MachineError` for a CUDA device that is not there.
    """
    kind, _, number = device.partition(":")
    if device not in ("auto", "cpu") and (kind != "cuda" or (number and not number.isdecimal())):
        raise UsageError(f"no device '{device}'", fix="give auto, cpu or cuda")
    if device == "cpu":
        return device
    import torch

    if not torch.cuda.is_available():
        if device == "auto":
            return "cpu"
        raise MachineError(
            f"--device {device}: torch sees no CUDA device here",
            fix="use --device cpu, or see `genodiff doctor`",
        )
    if number and int(number) >= torch.cuda.device_count():
        what = f"--device {device}: torch sees {torch.cuda.device_count()} CUDA devices here"
        raise MachineError(what, fix="give a smaller number")
    return "cuda" if device == "auto" else device


def set_threads(threads: int | None) -> None:
    """Let torch use `threads` CPU threads (None: all that this process may use).

    Raises `UsageError` for a number below 1.
    """
    if threads is None and hasattr(os, "sched_getaffinity"):
        threads = len(os.sched_getaffinity(0))
    if threads is None:
        return
    if threads < 1:
        raise UsageError(f"--threads {threads} is below 1", fix="give 1 or more")
    import torch

    torch.set_num_threads(threads)


def prefer_scan(scan: str | None) -> None:
    """Let the kernels take the provider `scan` (None: the best of the device).

    Raises `UsageError`, `MachineError` for one that is not known or does not run here.
    """
    from genodiff.kernels.dispatch import prefer_provider

    prefer_provider(scan)
