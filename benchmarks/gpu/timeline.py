"""What a training step on a GPU spends its time on: the kernels, their launches, the host.

    python benchmarks/gpu/timeline.py --out FILE [--rehearse] [--seconds 60]

Three steps under torch's profiler for each network, after two to warm up. Per step: milliseconds of
the step without the profiler, of all kernels, and of the host; launches; the kernels that take
longest.
"""

import time
from typing import Any

import torch
from machine import DEVICE, describe_error, interleaved, read_arguments, require_kernels, save
from step import training_step
from torch.profiler import ProfilerActivity, profile

from genodiff.backbones.backbone import PRESETS
from genodiff.training.trainer import compile_blocks

STEPS, SHOWN = 3, 40
NETWORKS = [
    ("caduceus-ph-470k", 128, 1024),
    ("caduceus-ph-470k", 16, 1024),  # the default batch of `genodiff train`
    ("caduceus-ph-7.7m", 16, 8192),
    ("caduceus-ps-470k", 64, 1024),
    ("dit-small", 32, 1024),
]
COMPILED = {"dit-small", "dit-tiny"}  # also measured as with `genodiff train --compile auto`


def profile_steps(
    preset: str, batch: int, length: int, rehearsal: bool, compiled: bool
) -> dict[str, Any]:
    """Where the time of a step goes; of a DiT also with its blocks `compiled`."""
    torch.manual_seed(0)
    complement = list(range(16)) if "-ps-" in preset else None
    network = PRESETS[preset].build(16, complement, seed=0).to(DEVICE)
    if compiled:
        compile_blocks(network)
    tokens = torch.randint(7, 11, (batch, length)).to(DEVICE)
    step = training_step(network, tokens, tokens > 8)
    timed = interleaved({"step": step}, 0.0 if rehearsal else 1.0, least=1 if rehearsal else 5)
    found: dict[str, Any] = {"preset": preset + " compiled" * compiled, "batch": batch}
    found["length"] = length
    found |= timed["step"]
    if "error" in found:
        return found
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (DEVICE == "cuda")
    with profile(activities=activities) as profiled:
        for _ in range(STEPS):
            step()
        if DEVICE == "cuda":
            torch.cuda.synchronize()
    rows = profiled.key_averages()
    on_gpu = [r for r in rows if r.device_type != torch.autograd.DeviceType.CPU]
    on_gpu.sort(key=lambda r: -r.self_device_time_total)
    host = sum(
        r.self_cpu_time_total for r in rows if r.device_type not in {r.device_type for r in on_gpu}
    )
    waits = {r.key: r.count / STEPS for r in rows if "ynchronize" in r.key or "item" in r.key}
    found |= {
        "gpu_ms": sum(r.self_device_time_total for r in on_gpu) / STEPS / 1e3,
        "host_ms": host / STEPS / 1e3,
        "launches": sum(r.count for r in on_gpu) / STEPS,
        "waits": waits,
        "kernels": [
            {
                "name": r.key[:120],
                "ms": r.self_device_time_total / STEPS / 1e3,
                "calls": r.count / STEPS,
            }
            for r in on_gpu[:SHOWN]
        ],
    }
    return found


def main() -> None:
    arguments = read_arguments(__doc__, seconds=60.0)
    require_kernels()
    tiny = [("caduceus-ph-tiny", 2, 32), ("dit-tiny", 2, 32)]
    networks = tiny if arguments.rehearse else NETWORKS
    start, rows = time.monotonic(), []
    ways = [(*n, again) for n in networks for again in (False, True)[: 1 + (n[0] in COMPILED)]]
    for preset, batch, length, compiled in ways:
        if time.monotonic() - start > arguments.seconds:
            break
        try:
            row = profile_steps(preset, batch, length, arguments.rehearse, compiled)
        except Exception as error:
            row = {"preset": preset, "batch": batch, "length": length}
            row["error"] = describe_error(error)
        rows.append(row)
        save(arguments.out, {"rows": rows})
        print({k: row.get(k) for k in ("preset", "batch", "ms", "gpu_ms", "host_ms", "launches")})
        for kernel in row.get("kernels", [])[:12]:
            print(f"    {kernel['ms']:8.3f} ms {kernel['calls']:6.0f} calls  {kernel['name'][:80]}")


if __name__ == "__main__":
    main()
