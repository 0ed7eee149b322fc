"""The scan alone on a GPU: forward, and forward with backward, beside mamba-ssm's
`selective_scan_fn`, in bfloat16.

    python benchmarks/gpu/scan.py --out FILE [--dry] [--seconds 60]

Both take what their own layers hand them: ours channels-last with B and C out of one projection,
mamba-ssm's (B, D, L). Also variants of the pinned choices, to choose better ones by. `fraction` is
of the bound that `sass.py` counts on (see there).
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from machine import DEVICE, interleaved, save
from peers import selective_scan_peer
from torch import Tensor

from genodiff.kernels.dispatch import PROVIDERS
from genodiff.kernels.scan import selective_scan
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
        scan = triton_scan if DEVICE == "cuda" else partial(selective_scan, return_state=True)
        return scan(x["u"], x["delta"], A, x["B"], x["C"], D, None, bias, True)[0]

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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--seconds", type=float, default=60)
    arguments = parser.parse_args()
    peer = selective_scan_peer()
    shapes = [
        (128, 1024, 256),
        (128, 1024, 236),
        (16, 8192, 256),
        (1, 131072, 256),
        (16, 8192, 512),
        (1, 131072, 512),
        (2, 131072, 512),
    ]
    if arguments.dry:
        shapes = [(1, 16, 8)]
    compiled = PROVIDERS["triton"].available
    start, rows = time.monotonic(), []
    result: dict[str, Any] = {"peer": peer if isinstance(peer, str) else "mamba_ssm", "rows": rows}
    for i, (batch, length, channels) in enumerate(shapes):
        if time.monotonic() - start > arguments.seconds:
            break
        forward, step = ours(batch, length, channels, torch.bfloat16)
        variants = {"ours forward": forward, "ours step": step}
        if not isinstance(peer, str):
            forward, step = theirs(peer, batch, length, channels, torch.bfloat16)
            variants |= {"mamba_ssm forward": forward, "mamba_ssm step": step}
        left = (arguments.seconds - (time.monotonic() - start)) / (len(shapes) - i)
        timed = interleaved(variants, max(0.1, 0.4 * left) if not arguments.dry else 0)
        steps = batch * length * channels
        row: dict[str, Any] = {"batch": batch, "length": length, "channels": channels}
        row["times"] = timed
        row["segments"] = plan_segments(batch, length, channels) if compiled else None
        row["gsteps_per_s"] = {k: steps / v["ms"] / 1e6 for k, v in timed.items() if "ms" in v}
        rows.append(row)
        save(arguments.out, result)
        rounded = {k: round(v, 2) for k, v in row["gsteps_per_s"].items()}
        print(batch, length, channels, rounded, flush=True)
        if i == 0 and not arguments.dry and compiled:
            result["choices"] = alternatives(batch, length, channels)
            save(arguments.out, result)
            print({k: v.get("ms", v) for k, v in result["choices"].items()}, flush=True)


def alternatives(batch: int, length: int, channels: int) -> dict[str, dict[str, Any]]:
    """Milliseconds of the kernels under other choices than the pinned ones."""
    found = {}
    for kernel, which in (("scan_forward", 0), ("scan_backward", 1)):
        for change in (*({"UNROLL": n} for n in (1, 2, 4)), {"maxnreg": 168}, {"maxnreg": 128}):
            pinned = dict(CHOICES[kernel])
            CHOICES[kernel].update(change)
            run = ours(batch, length, channels, torch.bfloat16)[which]
            found[f"{kernel} {change}"] = interleaved({"ms": run}, 0.2)["ms"]
            CHOICES[kernel].clear()
            CHOICES[kernel].update(pinned)
    return found


if __name__ == "__main__":
    main()
