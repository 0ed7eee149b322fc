"""The whole training step on a GPU, in bfloat16: ours beside the two-call Caduceus structure on
mamba-ssm, at three sizes and lengths.

    python benchmarks/gpu/step.py --out FILE --machine FILE [--dry] [--seconds 120]

A step is the network on masked tokens, cross-entropy on the masked ones, backward, clipping at 1,
fused AdamW; 131,072 tokens a step. The floor is the sum, not the largest, of three times per token
and layer, forward and backward together:

    scans     2 directions · E channels · (136 + 341) cycles of a scheduler for 32 channels, at
              1.755 GHz (counted in the machine code)
    products  3 · 2 · (3 D E + 2 E (2 R + 2 N)) operations at the rate that the same machine reaches
              in bfloat16
    memory    3 · 25 E bytes at the rate that the same machine copies at

and `fraction` is the floor over the measured time. Embedding, norms, loss and optimizer count as
waste.
"""

import argparse
import json
import time
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from machine import DEVICE, interleaved, save
from peers import TwoCallCaduceus, mamba_class
from torch import Tensor, nn

from genodiff.backbones.backbone import PRESETS
from genodiff.kernels.dispatch import select_provider

VOCABULARY, MASK, STATES = 16, 3, 16
CLOCK, SCHEDULERS = 1.755e9, 528


def floor_seconds(d_model: int, n_layer: int, tokens: int, machine: dict[str, Any]) -> float:
    """The least time of a step."""
    e, rank = 2 * d_model, ceil(d_model / 16)
    scans = 2 * e / 32 * (136 + 341) / (SCHEDULERS * CLOCK)
    products = (
        3 * 2 * (3 * d_model * e + 2 * e * (2 * rank + 2 * STATES)) / machine["bf16_flops_per_s"]
    )
    memory = 3 * 25 * e / machine["copy_bytes_per_s"]
    return tokens * n_layer * (scans + products + memory)


def training_step(network: nn.Module, tokens: Tensor, masked: Tensor) -> Callable[[], Tensor]:
    """One optimiser step."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4, fused=DEVICE == "cuda")
    xt = torch.where(masked, MASK, tokens)

    def step() -> Tensor:
        with torch.autocast(DEVICE, torch.bfloat16):
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


def peak_bytes(step: Callable[[], Any]) -> int:
    """The most memory that a step holds."""
    if DEVICE == "cpu":
        return 0
    torch.cuda.reset_peak_memory_stats()
    step()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated()


def measured(
    preset: str, batch: int, length: int, seconds: float, machine: dict[str, Any]
) -> dict[str, Any]:
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
    if not isinstance(mamba_class(), str) and DEVICE == "cuda":
        networks["mamba_ssm"] = TwoCallCaduceus(settings.d_model, settings.n_layer, VOCABULARY).to(
            DEVICE
        )
    row["parameters"] = {
        name: sum(p.numel() for p in set(network.parameters()))
        for name, network in networks.items()
    }
    steps = {name: training_step(network, tokens, masked) for name, network in networks.items()}
    row["times"] = interleaved(steps, seconds, least=3)
    for name, step in steps.items():
        if "ms" in row["times"][name]:
            row["peak_bytes"][name] = peak_bytes(step)
    row["mtok_per_s"] = {
        name: batch * length / t["ms"] / 1e3 for name, t in row["times"].items() if "ms" in t
    }
    if "ours" in row["mtok_per_s"]:
        least = floor_seconds(settings.d_model, settings.n_layer, batch * length, machine)
        row["fraction"] = 1e3 * least / row["times"]["ours"]["ms"]
        if "mamba_ssm" in row["mtok_per_s"]:
            row["ratio"] = row["mtok_per_s"]["ours"] / row["mtok_per_s"]["mamba_ssm"]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--machine", type=Path, required=True)
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--seconds", type=float, default=120)
    arguments = parser.parse_args()
    machine = json.loads(arguments.machine.read_text())
    peer = mamba_class()
    shapes = [(preset, batch, length) for batch, length in ((128, 1024), (16, 8192), (1, 131072))
              for preset in ("caduceus-ph-470k", "caduceus-ph-1.9m",
              "caduceus-ph-7.7m")]  # fmt: skip
    if arguments.dry:
        shapes = [("caduceus-ph-tiny", 2, 32)]
    start, rows = time.monotonic(), []
    for i, (preset, batch, length) in enumerate(shapes):
        left = arguments.seconds - (time.monotonic() - start)
        if left < 0:
            break
        rows.append(
            measured(
                preset,
                batch,
                length,
                0.4 * left / (len(shapes) - i) if not arguments.dry else 0,
                machine,
            )
        )
        save(arguments.out, {"peer": peer if isinstance(peer, str) else "mamba_ssm", "rows": rows})
        print(
            {
                k: rows[-1].get(k)
                for k in ("preset", "length", "mtok_per_s", "ratio", "fraction", "peak_bytes")
            },
            flush=True,
        )
        if DEVICE == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
