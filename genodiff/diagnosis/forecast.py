"""How fast a GPU could train a Caduceus, from what its kernels move and compute.

A layer takes, for each token, forward and backward together,

    scans     2 directions · E channels · (136 + 392) cycles of a scheduler for 32 channels, as
              counted in the machine code (`benchmarks/gpu/sass.py`)
    memory    `TRAFFIC` · E bytes at the rate at which the GPU copies

Products come on top, and so do embedding, loss, optimiser and whatever waits for memory: a network
is slower than this says. `REACHED` is what an H100 reached of it, at 131,072 tokens a step.
"""

import time

import torch

from genodiff.backbones.backbone import PRESETS
from genodiff.diagnosis.checks import Check

# Bytes that a token of a layer moves, per channel (E = 2 D): what each kernel reads and writes, in
# bfloat16, the states (16 numbers for 16 steps) too, the residual in float32. Short vectors (r, B,
# C) and what is read again from the cache are left out.
FORWARD = {
    "residual and norm": 2 + 1 + 2 + 1,  # in one kernel: the stream, what is added; both again
    "in_proj": 1 + 4,
    "convolutions": 2 * (2 + 2),
    "x_proj, dt_proj": 2 * (2 + 2),
    "scans": 2 * (2 + 2 + 2 + 2),  # u, delta, y, states
    "gate": 2 * 2 + 2 + 2 + 2,  # both y, z; their sum, which is kept, and the product
    "out_proj": 2 + 1,
}
BACKWARD = {
    "residual and norm": 1 + 2 + 2 + 2 + 1,
    "out_proj": 1 + 2 + 1 + 2,
    "gate": 6 + 8,  # each direction's gy in its own order
    "convolutions, steps again": 2 * (4 + 2),
    "scans": 2 * (2 + 2 + 2 + 2 + 2 + 2),
    "sums of B's and C's gradients": 2 * (4 + 4),
    "dt_proj, x_proj": 2 * (2 + 2 + 2 + 2 + 2),
    "convolutions": 2 * (2 + 2 + 2 + 2) + 2,
    "in_proj": 4 + 1 + 4 + 1,
}
TRAFFIC = sum(FORWARD.values()) + sum(BACKWARD.values())
SCAN_CYCLES = 136 + 392
REACHED = (0.33, 0.51)
"""Least and most of nine measurements (commit 00386cd, `benchmarks/gpu/RESULTS.md`)."""
_CLOCK = 1.755e9  # of an H100 or H200 under load, where the driver does not say
_BYTES = 1 << 28
_SHOWN = ("caduceus-ph-470k", "caduceus-ph-7.7m")


def count_token_seconds(channels: int, schedulers: int, clock: float, bandwidth: float) -> float:
    """Seconds of a token in a layer of E `channels`: scans and memory, one after the other.

    `clock` is in Hz, `bandwidth` in bytes read and written per second.
    """
    scans = 2 * channels / 32 * SCAN_CYCLES / (schedulers * clock)
    return scans + TRAFFIC * channels / bandwidth


def measure_bandwidth(device: str) -> float:
    """Bytes per second that copying reads and writes."""
    source = torch.zeros(_BYTES, dtype=torch.uint8, device=device)
    to, least = torch.empty_like(source), float("inf")
    for _ in range(5):
        torch.cuda.synchronize()
        began = time.perf_counter()
        to.copy_(source)
        torch.cuda.synchronize()
        least = min(least, time.perf_counter() - began)
    return 2 * _BYTES / least


def check_forecast() -> list[Check]:
    """A line on how fast this GPU could train; none without a GPU."""
    if not torch.cuda.is_available():
        return []
    try:
        bandwidth = measure_bandwidth("cuda")
    except RuntimeError as fault:
        detail = f"copying does not run: {fault}"
        return [Check("forecast", "warn", detail, "free the GPU's memory, or restart its driver")]
    properties = torch.cuda.get_device_properties(0)
    schedulers = 4 * properties.multi_processor_count
    # In kHz; not every torch has it.
    clock = 1e3 * getattr(properties, "clock_rate", 0) or _CLOCK
    paces = []
    for name in _SHOWN:
        settings = PRESETS[name]
        layer = count_token_seconds(2 * settings.d_model, schedulers, clock, bandwidth)
        pace = 1e-6 / (settings.n_layer * layer)
        paces.append(f"{pace:.3g} of {name.removeprefix('caduceus-')}")
    detail = (
        f"it copies {bandwidth / 1e12:.2f} TB/s; training in bf16 takes at most so many million "
        f"tokens/s: {', '.join(paces)} (counted; an H100 reached "
        f"{REACHED[0]} to {REACHED[1]} of it)"
    )
    return [Check("forecast", "ok", detail)]
