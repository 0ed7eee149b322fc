"""The whole training step on a GPU, in bfloat16: ours beside the two-call Caduceus structure on
mamba-ssm, at three sizes and lengths.

    python benchmarks/gpu/step.py --out FILE --machine FILE [--rehearse] [--seconds 120] [--own]
    python benchmarks/gpu/step.py --out FILE --warm 1024,8192 [--only PRESET]

A step is the network on masked tokens, cross-entropy on the masked ones, backward, clipping at 1,
fused AdamW; 131,072 tokens a step. `--own` leaves mamba-ssm out. `--warm` makes one step of each
size at these lengths, so that their kernels are compiled, a process for each length. With `--own`
the same step is measured as one CUDA graph too, "captured", and at the default batch. The floor is
the sum, not the largest, of three times per token and layer, forward and backward together:

    scans     2 directions · E channels · (136 + 382) cycles of a scheduler for 32 channels, at
              1.755 GHz (counted in the machine code)
    products  3 · 2 · (3 D E + 2 E (2 R + 2 N)) operations at the rate that the same machine reaches
              in bfloat16
    memory    `TRAFFIC` · E bytes (`genodiff/diagnosis/selftest.py`) at the rate that the same
              machine copies at

and `fraction` is the floor over the measured time. Embedding, loss and optimizer count as waste.
A shape that fails, out of memory for one, is recorded with its traceback.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from machine import DEVICE, describe_error, interleaved, read_arguments, require_kernels, save
from peers import TwoCallCaduceus, mamba_class
from torch import Tensor, nn

from genodiff.backbones.backbone import PRESETS
from genodiff.diagnosis.selftest import count_token_seconds
from genodiff.kernels.dispatch import select_provider
from genodiff.training.settle import set_gpu_arithmetic

VOCABULARY, MASK, STATES = 16, 3, 16
CLOCK, SCHEDULERS = 1.755e9, 528


def floor_seconds(d_model: int, n_layer: int, tokens: int, machine: dict[str, Any]) -> float:
    """The least time of a step."""
    e, rank = 2 * d_model, ceil(d_model / 16)
    products = (
        3 * 2 * (3 * d_model * e + 2 * e * (2 * rank + 2 * STATES)) / machine["bf16_flops_per_s"]
    )
    rest = count_token_seconds(e, SCHEDULERS, CLOCK, machine["copy_bytes_per_s"])
    return tokens * n_layer * (products + rest)


def training_step(
    network: nn.Module, tokens: Tensor, masked: Tensor, captured: bool = False
) -> Callable[[], Tensor]:
    """One optimiser step; `captured` is one that can become a CUDA graph."""
    graph = captured and DEVICE == "cuda"
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=1e-4, fused=DEVICE == "cuda", capturable=graph
    )
    xt = torch.where(masked, MASK, tokens)

    def step() -> Tensor:
        # Copies of weights that autocast keeps would not be made again when a graph is replayed.
        with torch.autocast(DEVICE, torch.bfloat16, cache_enabled=not captured):
            logits = network(xt)
        nll = F.cross_entropy(
            logits.float().view(-1, VOCABULARY), tokens.view(-1), reduction="none"
        )
        loss = (nll * masked.view(-1)).sum() / masked.sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    return step


def capture(step: Callable[[], Any]) -> Callable[[], Any]:
    """The step as one CUDA graph, without Python between its kernels; on a CPU the step itself.

    A graph knows addresses alone, so what it gives back holds the step, whose tensors it reads.
    """
    if DEVICE == "cpu":
        return step
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):  # kernels are compiled and moments made before the capture
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def replay(step: Callable[[], Any] = step) -> None:
        graph.replay()

    return replay


def peak_bytes(step: Callable[[], Any]) -> int:
    """The most memory that a step holds."""
    if DEVICE == "cpu":
        return 0
    torch.cuda.reset_peak_memory_stats()
    step()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated()


def measured(
    preset: str, batch: int, length: int, seconds: float, machine: dict[str, Any], own: bool
) -> dict[str, Any]:
    """A row of the table: the step of one network at one shape, ours and mamba-ssm's in turn."""
    settings = PRESETS[preset]
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(7, 11, (batch, length), generator=generator).to(DEVICE)
    masked = (torch.rand(batch, length, generator=generator) < 0.5).to(DEVICE)
    row: dict[str, Any] = {
        "preset": preset,
        "batch": batch,
        "length": length,
        "scan": select_provider(device=DEVICE).name,
        "peak_bytes": {},
    }
    networks: dict[str, nn.Module] = {"ours": settings.build(VOCABULARY, None, seed=0).to(DEVICE)}
    if not own and not isinstance(mamba_class(), str) and DEVICE == "cuda":
        networks["mamba_ssm"] = TwoCallCaduceus(settings.d_model, settings.n_layer, VOCABULARY).to(
            DEVICE
        )
    row["parameters"] = {
        name: sum(p.numel() for p in set(network.parameters()))
        for name, network in networks.items()
    }
    steps = {name: training_step(network, tokens, masked) for name, network in networks.items()}
    try:  # a step without launches, as training plays it where the host is the bound
        network = settings.build(VOCABULARY, None, seed=0).to(DEVICE)
        steps["captured"] = capture(training_step(network, tokens, masked, captured=True))
    except Exception as error:
        row["capture_error"] = describe_error(error)
    row["times"] = interleaved(steps, seconds, least=3)
    for name, step in steps.items():
        if "ms" in row["times"][name]:
            try:
                row["peak_bytes"][name] = peak_bytes(step)
            except Exception as error:
                row["peak_error"] = describe_error(error)
    row["mtok_per_s"] = {
        name: batch * length / t["ms"] / 1e3 for name, t in row["times"].items() if "ms" in t
    }
    if "ours" in row["mtok_per_s"]:
        least = floor_seconds(settings.d_model, settings.n_layer, batch * length, machine)
        row["fraction"] = 1e3 * least / row["times"]["ours"]["ms"]
    if "mamba_ssm" in row["mtok_per_s"]:
        for name, ratio in (("ours", "ratio"), ("captured", "captured_ratio")):
            if name in row["mtok_per_s"]:
                row[ratio] = row["mtok_per_s"][name] / row["mtok_per_s"]["mamba_ssm"]
    return row


PRESETS_MEASURED = ("caduceus-ph-470k", "caduceus-ph-1.9m", "caduceus-ph-7.7m")


def warm(length: int, only: str, rehearsal: bool) -> dict[str, Any]:
    """One step of each size at one length; seconds of each, or the traceback."""
    tiny = [("caduceus-ph-tiny", 2, 32)]
    batch = max(1, 131072 // length)
    sizes = [(p, batch, length) for p in PRESETS_MEASURED if only in ("", p)]
    found: dict[str, Any] = {}
    for preset, rows, steps in tiny if rehearsal else sizes:
        start = time.monotonic()
        try:
            network = PRESETS[preset].build(VOCABULARY, None, seed=0).to(DEVICE)
            tokens = torch.randint(7, 11, (rows, steps), device=DEVICE)
            float(training_step(network, tokens, tokens > 8)())
            found[preset] = time.monotonic() - start
        except Exception as error:
            found[preset] = describe_error(error)
        print(preset, length, found[preset], flush=True)
        if DEVICE == "cuda":
            torch.cuda.empty_cache()
    return found


def warm_side_by_side(lengths: list[str], arguments: Any) -> int:
    """`warm` for each length in a process of its own; how many of them failed."""
    processes = []
    for length in lengths:
        out = arguments.out.with_name(f"{arguments.out.stem}-{length}.json")
        command = [sys.executable, __file__, "--out", str(out), "--warm", length]
        processes.append(subprocess.Popen(command + ["--rehearse"] * arguments.rehearse))
    return sum(process.wait() != 0 for process in processes)


def main() -> None:
    arguments = read_arguments(__doc__, machine=Path, seconds=120.0, own=False, warm="", only="")
    lengths = [x for x in arguments.warm.split(",") if x]
    if len(lengths) > 1:
        sys.exit(warm_side_by_side(lengths, arguments))
    require_kernels()
    with set_gpu_arithmetic():  # as training does
        measure(arguments, lengths)


def measure(arguments: Any, lengths: list[str]) -> None:
    """The step's table, or the kernels of one length compiled."""
    if lengths:
        found = warm(int(lengths[0]), arguments.only, arguments.rehearse)
        save(arguments.out, found)
        sys.exit(any(isinstance(x, str) for x in found.values()))
    machine = json.loads(arguments.machine.read_text())
    peer = "left out" if arguments.own else mamba_class()
    # The most telling first; the longest rows are no longer the last.
    shapes = [
        (preset, batch, length)
        for preset in PRESETS_MEASURED
        for batch, length in ((128, 1024), (1, 131072), (16, 8192))
    ]
    if arguments.own:  # the default batch, where launches take longer than kernels
        shapes.insert(1, (PRESETS_MEASURED[0], 16, 1024))
    if arguments.rehearse:
        shapes = [("caduceus-ph-tiny", 2, 32)]
    start, rows = time.monotonic(), []
    result = {"peer": peer if isinstance(peer, str) else "mamba_ssm", "rows": rows}
    for i, (preset, batch, length) in enumerate(shapes):
        left = arguments.seconds - (time.monotonic() - start)
        if left < 0:
            break
        most = 0.0 if arguments.rehearse else 0.4 * left / (len(shapes) - i)
        try:
            row = measured(preset, batch, length, most, machine, arguments.own)
        except Exception as error:
            row = {"preset": preset, "batch": batch, "length": length, "peak_bytes": {}}
            row["error"] = describe_error(error)
        rows.append(row)
        save(arguments.out, result)
        keys = (
            "preset",
            "length",
            "mtok_per_s",
            "ratio",
            "captured_ratio",
            "fraction",
            "peak_bytes",
        )
        print({k: row.get(k) for k in keys}, flush=True)
        if DEVICE == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
