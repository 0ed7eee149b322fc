"""The Triton kernels on a GPU against float64: errors in float32 and bfloat16, decays near 1, time
split or not, the same bits again.

    python benchmarks/gpu/parity.py --out FILE [--dry] [--seconds 90]

Errors are relative norms of y and of each gradient. The truth is the torch scan in float64
(`chunked_scan`, itself tested against the naive one). "fast exp" repeats float32 with the machine's
own 2^x, to see whether the exact one is worth its instructions.
"""

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from machine import DEVICE, save
from torch import Tensor

from genodiff.kernels.dispatch import PROVIDERS
from genodiff.kernels.scan import selective_scan
from genodiff.kernels.torch_scan import chunked_scan
from genodiff.kernels.triton import launch
from genodiff.kernels.triton.launch import CHOICES
from genodiff.kernels.triton.scan import plan_segments, triton_scan

Result = dict[str, Tensor]


def problem(
    batch: int, length: int, channels: int, states: int, decay: float, seed: int
) -> tuple[dict[str, Tensor], Tensor]:
    """Inputs that bfloat16 holds exactly, in float64, and the gradient of y."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator).bfloat16().double().to(DEVICE)

    timed = {"u": normal(batch, length, channels), "delta": normal(batch, length, channels)}
    timed |= {"B": normal(batch, length, states), "C": normal(batch, length, states)}
    own = {
        "A": -decay * torch.exp(normal(channels, states)),
        "D": normal(channels),
        "delta_bias": 0.3 * normal(channels) - 2,
    }
    return timed | own, normal(batch, length, channels)


def solve(
    scan: Any,
    inputs: dict[str, Tensor],
    gy: Tensor,
    reverse: bool,
    low: torch.dtype,
    wide: torch.dtype,
) -> Result:
    """y, the last state and the gradients, in float64."""
    x = {
        k: v.to(low if k in ("u", "delta", "B", "C") else wide).requires_grad_()
        for k, v in inputs.items()
    }
    y, state = scan(**x, delta_softplus=True, reverse=reverse)
    grads = torch.autograd.grad((y * gy.to(y.dtype)).sum(), list(x.values()))
    return {"y": y.detach().double(), "state": state.detach().double()} | {
        f"d{k}": g.double() for k, g in zip(x, grads, strict=True)
    }


def errors(got: Result, truth: Result) -> dict[str, float]:
    return {k: float((got[k] - truth[k]).norm() / truth[k].norm()) for k in truth}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--seconds", type=float, default=90)
    arguments = parser.parse_args()
    shapes = [(4, 1024, 256, 16, 1.0), (2, 1000, 236, 16, 1.0), (1, 63, 40, 8, 1.0), (1, 1, 33, 1,
        1.0), (1, 16384, 64, 16, 0.02),
              (1, 16384, 64, 16, 1.0), (40, 129, 1024, 16, 1.0)]  # fmt: skip
    if arguments.dry:
        shapes = [(1, 9, 5, 2, 1.0), (1, 6, 3, 1, 0.02)]
    # Dry, on a machine without a GPU, it is the control flow that is tried, with any scan.
    scan = partial(selective_scan, return_state=True) if arguments.dry else triton_scan
    start, found = time.monotonic(), []
    for i, (batch, length, channels, states, decay) in enumerate(shapes):
        # Every variant is compiled first, which takes a second each.
        for reverse in (False, True) if i < 2 else (False,):
            if time.monotonic() - start > arguments.seconds:
                found.append({"skipped": [batch, length, channels, states], "why": "out of time"})
                continue
            inputs, gy = problem(batch, length, channels, states, decay, i)
            truth = solve(chunked_scan, inputs, gy, reverse, torch.float64, torch.float64)
            row: dict[str, Any] = {"batch": batch, "length": length, "channels": channels}
            row |= {"states": states, "decay": decay, "reverse": reverse, "segments": None}
            if launch.fits(inputs["u"].float()):
                row["segments"] = plan_segments(batch, length, channels)[0]
            for name, low in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
                first = solve(scan, inputs, gy, reverse, low, torch.float32)
                again = solve(scan, inputs, gy, reverse, low, torch.float32)
                row[name] = errors(first, truth)
                row[f"{name} repeats"] = all(torch.equal(first[k], again[k]) for k in first)
            if decay != 1.0 or i == 0:
                kind, pinned = CHOICES["float32"], CHOICES["float32"]["EXACT"]
                kind["EXACT"] = not pinned
                fast = solve(scan, inputs, gy, reverse, torch.float32, torch.float32)
                row["float32, fast exp"] = errors(fast, truth)
                kind["EXACT"] = pinned
            below, CHOICES["split_below"] = CHOICES["split_below"], 0
            unsplit = solve(scan, inputs, gy, reverse, torch.float32, torch.float32)
            row["float32, unsplit"] = errors(unsplit, truth)
            CHOICES["split_below"] = below
            found.append(row)
            provider = PROVIDERS["triton"]
            fault = None if provider.available else provider.reason
            save(arguments.out, {"self_test": fault, "rows": found})
            worst = [f"{max(row[name].values()):.1e}" for name in ("float32", "bfloat16")]
            repeats = row["float32 repeats"], row["bfloat16 repeats"]
            print(batch, length, channels, reverse, *worst, *repeats, flush=True)


if __name__ == "__main__":
    main()
