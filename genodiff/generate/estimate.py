"""What sampling takes, before it is begun: disk, memory, evaluations of the network, time."""

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from genodiff.errors import MachineError
from genodiff.generate.request import SampleRequest
from genodiff.generate.sample import AUTO_STEPS, Workload, bits_lost, fitting_batch
from genodiff.io.progress import format_duration
from genodiff.io.target import format_size, free_disk_space

_HEADER_BYTES = 110  # of a FASTA record
_MEMORY_PER_BASE = 32  # bytes, in a batch
_LARGEST_GUESS = 32  # sequences at a time, where nothing is said


def check_room(
    target: str, n: int, lengths: Sequence[int], line_width: int, batch_size: int | None
) -> None:
    """Raises `MachineError` where disk or memory is too small for the FASTA file `target`.

    It is to hold `n` records of each of `lengths` bases.
    """
    records, bases = n * len(lengths), n * sum(lengths)
    if target != "-":
        need = records * _HEADER_BYTES + bases + (bases // line_width if line_width else 0)
        need = need // 4 if target.endswith(".gz") else need
        free = free_disk_space(target)
        if need > free:
            raise MachineError(
                f"{records:,} records need about {format_size(need)} of disk space, "
                f"{format_size(free)} are free",
                file=target,
                fix="give a smaller --n or --length, or another disk",
            )
    longest = max(lengths, default=0)
    need = min(batch_size or _LARGEST_GUESS, records) * longest * _MEMORY_PER_BASE
    if not hasattr(os, "sysconf"):
        return
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if need > memory:
        raise MachineError(
            f"a batch of sequences of {longest:,} bases needs about {format_size(need)} of memory, "
            f"{format_size(memory)} are here",
            fix="give a smaller --batch-size or --length",
        )


def describe_plan(request: SampleRequest, work: Workload, target: str) -> list[str]:
    """Lines that say what sampling would take; one evaluation of the network is timed."""
    model, how, n, lengths = request.model, request.how, request.n, request.lengths
    units = request.domain.units
    window = min(model.config.data.seq_len, max(lengths))
    device = next(model.backbone.parameters()).device
    rows = min(how.batch_size or fitting_batch(model, window), n * len(lengths))
    xt = torch.full((rows, window), model.alphabet.mask_id, device=device)
    with torch.inference_mode():
        model.backbone(xt)
        began = time.perf_counter()
        model.backbone(xt).cpu()
        each = (time.perf_counter() - began) / len(xt)
    weights = sum(p.numel() for p in model.backbone.parameters())
    seconds = n * work.evaluations * each
    lines = [
        f"model        {weights:,} parameters, {model.alphabet.name}, trained on "
        f"{model.config.data.seq_len:,} {units}, {model.digest}",
        f"records      {n * len(lengths):,} of {min(lengths):,} to {max(lengths):,} {units}",
        f"to fill      {n * work.bases:,} {units} in {n * work.windows:,} windows",
        f"evaluations  about {n * work.evaluations:,.0f} of the network on one window",
        f"time         about {format_duration(seconds)} on {device}",
    ]
    curve = _read_curve(model.run / "eval.json")
    if curve and how.sampler == "ancestral":
        steps = how.steps or AUTO_STEPS
        lost = 1000 * bits_lost(curve, model.diffusion.schedule, steps)
        lines.append(
            f"steps        {steps:,} cost about {lost:,.2f} bits per 1,000 {units} against one "
            f"{request.domain.unit} at a time"
        )
    lines.append(f"files        {target}" + ("" if target == "-" else f", {target}.json"))
    return lines


def _read_curve(path: Path) -> list[tuple[float, float]]:
    """(masked share, nats per masked base) as an evaluation measured it; empty without one."""
    try:
        evaluations = json.loads(path.read_text(encoding="utf-8"))
        bins = evaluations.get("valid", evaluations.get("test"))["curve"]
        return [
            ((b["rate_lo"] + b["rate_hi"]) / 2, b["nats"]) for b in bins if b["nats"] is not None
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
