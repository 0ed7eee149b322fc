"""The scan alone on a GPU: forward, and forward with backward, beside mamba-ssm's
`selective_scan_fn`, in bfloat16.

    python benchmarks/gpu/scan.py --out FILE [--rehearse] [--seconds 60] [--own] [--choices]
    ncu --profile-from-start off ... python benchmarks/gpu/scan.py --out FILE --profile

Both take what their own layers hand them: ours channels-last with B and C out of one projection,
mamba-ssm's (B, D, L). `--own` leaves mamba-ssm out. `--choices` measures instead what
`choices.json` pins: unrolling, a cap on registers, and from how few warps on time is split. A cap
of 128 is not tried: its backward spills 50 words. `--profile` runs one forward pass, and one with a
backward pass, between a profiler's start and stop. What fails is recorded with its traceback.
"""

import time
from collections.abc import Callable
from typing import Any

import torch
from machine import DEVICE, describe_error, interleaved, read_arguments, require_kernels, save
from peers import selective_scan_peer
from torch import Tensor

from genodiff.kernels.direction import ScanInputs
from genodiff.kernels.dispatch import PROVIDERS
from genodiff.kernels.torch_scan import chunked_scan
from genodiff.kernels.triton.launch import CHOICES
from genodiff.kernels.triton.scan import plan_segments, triton_scan

STATES = 16


def ours(
    batch: int, length: int, channels: int, dtype: torch.dtype
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Forward, and forward with backward."""
    x = {
        name: torch.randn(batch, length, channels, device=DEVICE, dtype=dtype).requires_grad_()
        for name in ("u", "delta")
    }
    projected = torch.randn(batch, length, 2 * STATES + 8, device=DEVICE, dtype=dtype)
    x |= {
        "B": projected[..., 8 : 8 + STATES].requires_grad_(),
        "C": projected[..., 8 + STATES :].requires_grad_(),
    }
    A = -torch.arange(1.0, STATES + 1, device=DEVICE).repeat(channels, 1).requires_grad_()
    D, bias = (
        torch.ones(channels, device=DEVICE).requires_grad_(),
        torch.full((channels,), -3.0, device=DEVICE).requires_grad_(),
    )
    gy = torch.randn(batch, length, channels, device=DEVICE, dtype=dtype)

    def run() -> Tensor:
        # Without a GPU, in a dry run, it is the control flow that is tried, with any scan.
        scan = triton_scan if DEVICE == "cuda" else chunked_scan
        return scan(ScanInputs(x["u"], x["delta"], A, x["B"], x["C"], D, bias), True, False)[0]

    def forward() -> None:
        with torch.no_grad():
            run()

    return forward, lambda: torch.autograd.grad(run(), [*x.values(), A, D, bias], gy)


def theirs(
    scan: Any, batch: int, length: int, channels: int, dtype: torch.dtype
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The same by mamba-ssm."""
    u, delta = (
        torch.randn(batch, channels, length, device=DEVICE, dtype=dtype).requires_grad_()
        for _ in range(2)
    )
    B, C = (
        torch.randn(batch, STATES, length, device=DEVICE, dtype=dtype).requires_grad_()
        for _ in range(2)
    )
    A = -torch.arange(1.0, STATES + 1, device=DEVICE).repeat(channels, 1).requires_grad_()
    D, bias = (
        torch.ones(channels, device=DEVICE).requires_grad_(),
        torch.full((channels,), -3.0, device=DEVICE).requires_grad_(),
    )
    gy = torch.randn(batch, channels, length, device=DEVICE, dtype=dtype)

    def run() -> Tensor:
        y: Tensor = scan(u, delta, A, B, C, D, z=None, delta_bias=bias, delta_softplus=True)
        return y

    def forward() -> None:
        with torch.no_grad():
            run()

    return forward, lambda: torch.autograd.grad(run(), [u, delta, A, B, C, D, bias], gy)


SHAPES = [
    (128, 1024, 256),
    (128, 1024, 236),
    (16, 8192, 256),
    (1, 131072, 256),
    (16, 8192, 512),
    (1, 131072, 512),
    (2, 131072, 512),
]
CHANGES: list[tuple[str, dict[str, Any]]] = [
    *((k, {"AHEAD": cache}) for cache in ("", "L1") for k in ("scan_forward", "scan_backward")),
    *((kernel, {"UNROLL": n}) for kernel in ("scan_forward", "scan_backward") for n in (1, 2, 4)),
    ("scan_forward", {"maxnreg": 168}),
    ("scan_backward", {"maxnreg": 168}),
]
# Rows with 1,024, 1,024, 512 and 256 warps: on both sides of the thresholds.
SPLIT_SHAPES = [(128, 1024, 256), (64, 2048, 512), (64, 1024, 256), (16, 8192, 512)]
SPLITS = [{"split_below": n} for n in (0, 512, 1056)] + [{"split_into": 2112}]


def measure(
    peer: Any, shape: tuple[int, int, int], seconds: float, compiled: bool
) -> dict[str, Any]:
    """A row of the table: both scans at one shape, in turn."""
    batch, length, channels = shape
    forward, step = ours(batch, length, channels, torch.bfloat16)
    variants = {"ours forward": forward, "ours step": step}
    if not isinstance(peer, str):
        forward, step = theirs(peer, batch, length, channels, torch.bfloat16)
        variants |= {"mamba_ssm forward": forward, "mamba_ssm step": step}
    timed = interleaved(variants, seconds)
    steps = batch * length * channels
    row: dict[str, Any] = {"batch": batch, "length": length, "channels": channels}
    row["times"] = timed
    row["segments"] = plan_segments(batch, length, channels) if compiled else None
    row["gsteps_per_s"] = {k: steps / v["ms"] / 1e6 for k, v in timed.items() if "ms" in v}
    return row


def try_changes(
    changes: list[tuple[dict[str, Any], dict[str, int]]], shape: tuple[int, int, int], which: int
) -> dict[str, Any]:
    """Milliseconds under each change of the pinned choices, (what is changed, how), in turn."""
    found: dict[str, Any] = {}
    for target, change in changes:
        pinned = dict(target)
        target.update(change)
        try:
            found[str(change)] = interleaved({"ms": ours(*shape, torch.bfloat16)[which]}, 0.2)["ms"]
        except Exception as error:  # a cap on registers that the compiler refuses, say
            found[str(change)] = {"error": describe_error(error)}
        target.clear()
        target.update(pinned)
    return found


def measure_choices(arguments: Any, shapes: list[tuple[int, int, int]]) -> None:
    """What `choices.json` pins, against its alternatives."""
    result: dict[str, Any] = {"choices": {}, "splits": []}
    for i, shape in enumerate(shapes):
        row: dict[str, Any] = dict(zip(("batch", "length", "channels"), shape, strict=True))
        changes = [(CHOICES, change) for change in [{}, *SPLITS]]
        row["forward"] = try_changes(changes, shape, 0)
        row["step"] = try_changes(changes, shape, 1)
        result["splits"].append(row)
        if i == 0:
            for kernel, change in CHANGES:
                which = int(kernel == "scan_backward")
                found = try_changes([(CHOICES[kernel], change)], shape, which)
                result["choices"] |= {f"{kernel} {k}": v for k, v in found.items()}
        save(arguments.out, result)
        print(row, flush=True)


def profile_once(arguments: Any, shape: tuple[int, int, int]) -> None:
    """One call of each kind under a profiler that waits for it, once they are compiled."""
    calls = ours(*shape, torch.bfloat16)
    for call in calls:
        call()
    if DEVICE == "cuda":
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
    for call in calls:
        call()
    if DEVICE == "cuda":
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()
    save(arguments.out, {"shape": shape})


def main() -> None:
    arguments = read_arguments(__doc__, seconds=60.0, own=False, choices=False, profile=False)
    require_kernels()
    compiled = PROVIDERS["triton"].available
    tiny = [(1, 16, 8)]
    if arguments.profile:
        profile_once(arguments, tiny[0] if arguments.rehearse else SHAPES[0])
        return
    if arguments.choices:
        measure_choices(arguments, tiny if arguments.rehearse else SPLIT_SHAPES)
        return
    peer = "left out" if arguments.own else selective_scan_peer()
    shapes = tiny if arguments.rehearse else SHAPES
    start, rows = time.monotonic(), []
    result: dict[str, Any] = {"peer": peer if isinstance(peer, str) else "mamba_ssm", "rows": rows}
    for i, shape in enumerate(shapes):
        left = arguments.seconds - (time.monotonic() - start)
        if left <= 0:
            break
        most = 0.0 if arguments.rehearse else max(0.1, 0.4 * left / (len(shapes) - i))
        try:
            row = measure(peer, shape, most, compiled)
        except Exception as error:
            row = {"batch": shape[0], "length": shape[1], "channels": shape[2]}
            row |= {"error": describe_error(error), "gsteps_per_s": {}}
        rows.append(row)
        save(arguments.out, result)
        print(*shape, {k: round(v, 2) for k, v in row["gsteps_per_s"].items()}, flush=True)


if __name__ == "__main__":
    main()
