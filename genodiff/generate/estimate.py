"""What sampling takes, before it is begun: disk, memory, evaluations, time; and what steps lose.

Positions that a step reveals together are drawn as if independent. What that costs of T steps is
NELBO_T − NELBO_∞ (`bits_lost`), and the curve of C_k / k tells it for every T and schedule. The
curve is measured once on the valid split. It stands in the run's evaluation, or beside it in
`mask_curve.json` under the hash of the model's weights, and another model's is never read.
"""

import json
import logging
import math
import os
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from genodiff.diffusion.sampler import SAMPLERS, revealed_share
from genodiff.diffusion.schedule import Schedule
from genodiff.errors import GenodiffError, MachineError, UsageError, format_count
from genodiff.generate.sample import Drawing, Workload, choose_batch_size, choose_sampler, infill
from genodiff.generate.sampling import AUTO_STEPS, Sampling
from genodiff.io.atomic import write_json
from genodiff.io.progress import ProgressDisplay, format_duration
from genodiff.io.target import format_size, free_disk_space, is_stream
from genodiff.jobs.request import find_named
from genodiff.runs.run_paths import check_may_write, is_no_network
from genodiff.runs.trained_model import TrainedModel

_HEADER_BYTES = 110  # of a FASTA record
_MEMORY_PER_BASE = 32  # bytes, in a batch
_TIMING = 1.0  # seconds
_LONG = 120.0  # seconds
_BLOCK = 64  # bases
_LARGEST_GUESS = 32  # sequences at a time, where nothing is said


def check_room(
    target: str, n: int, lengths: Sequence[int], line_width: int, batch_size: int | None
) -> None:
    """Raises `MachineError` where disk or memory is too small for the FASTA file `target`.

    It is to hold `n` records of each of `lengths` bases.
    """
    records, bases = n * len(lengths), n * sum(lengths)
    if not is_stream(target):
        need = records * _HEADER_BYTES + bases + (bases // line_width if line_width else 0)
        need = need // 4 if target.endswith(".gz") else need
        free = free_disk_space(target)
        if need > free:
            what = f"{records:,} records need about {format_size(need)} of disk space"
            fix = "give a smaller --n or --length, or another disk"
            raise MachineError(f"{what}, {format_size(free)} are free", file=target, fix=fix)
    longest = max(lengths, default=0)
    need = min(batch_size or _LARGEST_GUESS, records) * longest * _MEMORY_PER_BASE
    if not hasattr(os, "sysconf"):
        return
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if need > memory:
        needs = f"needs about {format_size(need)} of memory, {format_size(memory)} are here"
        fix = "give a smaller --batch-size or --length"
        raise MachineError(f"a batch of sequences of {longest:,} bases {needs}", fix=fix)


def plan_sampling(drawing: Drawing, work: Workload, files: Sequence[str]) -> dict[str, Any]:
    """What sampling would take, with lines to read; the network is timed for about a second."""
    model, how, n, lengths = drawing.model, drawing.how, drawing.n, drawing.lengths
    units = drawing.domain.units
    window = min(model.config.data.seq_len, max(lengths))
    device = next(model.backbone.parameters()).device
    rows = min(how.batch_size or choose_batch_size(model, window), n * len(lengths))
    seconds = n * work.evaluations * _seconds_per_window(drawing, rows, window)
    weights = sum(p.numel() for p in model.backbone.parameters())
    values: dict[str, Any] = {
        "parameters": weights,
        "checkpoint": model.digest,
        "records": n * len(lengths),
        "bases" if units == "bases" else "tokens": n * work.bases,
        "windows": n * work.windows,
        "sampler": how.sampler,
        "evaluations": round(n * work.evaluations),
        "seconds": round(seconds, 1),
        "device": str(device),
    }
    network = f"{weights:,} parameters, {model.alphabet.name}, trained on "
    network += f"{model.config.data.seq_len:,} {units}, {model.digest}"
    lines = [
        f"model        {'no network' if is_no_network(model.run) else network}",
        f"records      {n * len(lengths):,} of {min(lengths):,} to {max(lengths):,} {units}",
        f"to fill      {n * work.bases:,} {units} in {format_count(n * work.windows, 'window')}",
        f"evaluations  about {n * work.evaluations:,.0f} of one window ({how.sampler})",
        f"time         about {format_duration(seconds)} on {device}",
    ]
    evaluations = (read_entry(model.run / "eval.json", split) for split in ("valid", "test"))
    curve = make_curve(next(filter(None, evaluations), {}))
    if curve and how.sampler == "ancestral":
        steps = how.step_count or AUTO_STEPS
        lost = 1000 * bits_lost(curve, model.diffusion.schedule, steps)
        values["bits_lost_per_1000"] = round(lost, 4)
        cost = f"{steps:,} cost about {lost:,.2f} bits per 1,000 {units}"
        lines.append(f"steps        {cost} against one {drawing.domain.unit} at a time")
    quicker = _quicker(drawing, seconds)
    if quicker:
        lines.append(f"quicker      {quicker}")
    if drawing.states is not None:
        values["states"] = drawing.states
        lines.append(f"constraints  {drawing.states:,} states")
    lines.append(f"files        {', '.join(files)}")
    return values | {"lines": lines}


class _Enough(Exception):
    """Ends a draw that is timed."""


def _seconds_per_window(drawing: Drawing, rows: int, window: int) -> float:
    """Of one evaluation in a batch of `rows` windows: the first second of the work itself.

    A sampler takes longer than the network alone: it draws, and decides close draws in float64.
    """
    model = drawing.model
    draft: Any = np.full(window, model.alphabet.mask_id, np.int64)
    began = last = 0.0
    calls = 0

    def tick(windows: int) -> None:
        nonlocal began, last, calls
        last = time.perf_counter()
        if not began:  # the first evaluation warms up
            began = last
            return
        calls += windows
        if last - began > _TIMING:
            raise _Enough

    how = replace(drawing.how, batch_size=rows)
    with suppress(_Enough):
        while not calls:
            start = time.perf_counter()
            done = sum(one.nfe for one in infill(model, [draft] * rows, how=how, tick=tick))
            if not began:  # all evaluations were in float64, which are not told
                calls, began, last = done, start, time.perf_counter()
    return (last - began) / calls


def _quicker(drawing: Drawing, seconds: float) -> str | None:
    """What would take less time, where the request takes long, and what each costs."""
    how, model = drawing.how, drawing.model
    if seconds < _LONG:
        return None
    ways, window = [], model.config.data.seq_len
    if not SAMPLERS[str(how.sampler)].uses_steps:
        others = [s for s in model.objective.samplers if SAMPLERS[s].uses_steps]
        ways += [f"--sampler {name} --steps 64" for name in others[:1]]
    elif (steps := how.step_count or AUTO_STEPS) >= 32:
        ways.append(f"--steps {steps // 4} (more bases are drawn at once)")
    if max(drawing.lengths) > window:
        if (how.stride or 0) < window:
            ways.append(f"--stride {window} (windows that do not overlap)")
        with suppress(UsageError):
            if model.config.diffusion.block is None and model.in_blocks(_BLOCK) is not model:
                ways.append(f"--block {_BLOCK} (block after block, each read once)")
    if ways:
        ways.append("--steps 1 (one pass: the bases of a window know nothing of each other)")
    return "; ".join(ways) or None


FILE = "mask_curve.json"
_WINDOWS = 512  # that the curve is measured on
_log = logging.getLogger("genodiff")
MOST_STEPS = 16_384
Curve = list[tuple[float, float]]
"""(masked share, nats per masked base)."""


def bits_lost(curve: Sequence[tuple[float, float]], schedule: Schedule, steps: int) -> float:
    """What `steps` steps cost in bits per base of a long text: NELBO_T − NELBO_∞.

    NELBO_∞ is one base at a time.

    Bases that appear together are drawn as if independent. `curve` holds (masked share, nats per
    masked base), as an evaluation gives it: C_k / k at k / n. NELBO_T is its sum over the steps'
    starts, NELBO_∞ its integral.
    """
    share, nats = np.array(sorted(curve)).T
    left = 1 - np.concatenate([[0.0], revealed_share(schedule, steps).numpy()])
    fine = (np.arange(4096) + 0.5) / 4096
    summed = float((-np.diff(left) * np.interp(left[:-1], share, nats)).sum())
    return (summed - float(np.interp(fine, share, nats).mean())) / math.log(2)


def choose_steps(curve: Sequence[tuple[float, float]], schedule: Schedule, wanted: float) -> int:
    """The fewest steps, of 1, 2, 4, ... and those between, that lose at most `wanted` bits a base.

    Raises `UsageError` where none does.
    """

    def suffices(steps: int) -> bool:
        return bits_lost(curve, schedule, steps) <= wanted

    enough = 1
    while not suffices(enough):
        enough *= 2
        if enough > MOST_STEPS:
            what = f"no number of steps up to {MOST_STEPS:,} loses so little"
            raise UsageError(what, fix="give a larger --bits-lost, or --sampler first-hitting")
    between = range(enough // 2 + 1, enough)  # fewer lose more
    return enough // 2 + 1 + bisect_left(between, True, key=suffices)


def find_steps(model: TrainedModel, how: Sampling, wanted: float) -> int:
    """The fewest steps that lose at most `wanted` bits per 1,000 positions, by the valid split.

    Raises `UsageError` where the curve does not tell what the sampler loses.
    """
    how = choose_sampler(how, model)
    if how.sampler != "ancestral":
        what = f"--bits-lost is for the ancestral sampler, and this is {how.sampler}"
        raise UsageError(what, fix="give --steps, or --sampler ancestral")
    if model.diffusion.time_conditioning or not model.objective.curve:
        fix = "give --steps"
        raise UsageError("--bits-lost is for masked models without time conditioning", fix=fix)

    def measure() -> dict[str, Any]:
        _log.info("measuring the loss by number of steps, once, on the valid split")
        with ProgressDisplay() as display:
            measured: dict[str, Any] = find_named("genodiff.evaluation.evaluate:evaluate")(
                model, "valid", max_windows=_WINDOWS, baselines=False,
                progress=display.show_batches,
            )  # fmt: skip
        return measured

    steps = choose_steps(find_curve(model, measure), model.diffusion.schedule, wanted / 1000)
    _log.info("%d steps lose at most %g bits per 1,000 positions", steps, wanted)
    return steps


def find_curve(model: TrainedModel, measure: Callable[[], dict[str, Any]]) -> Curve:
    """The curve of this model: kept, or of `measure()`, an evaluation, which is then kept.

    Raises `GenodiffError` where the evaluation has no curve.
    """
    for entry in (read_entry(model.run / "eval.json", "valid"), read_entry(model.run / FILE, None)):
        curve = make_curve(entry) if entry.get("checkpoint") == model.digest else []
        if curve:
            return curve
    found = measure()
    curve = make_curve(found)
    if not curve:
        raise GenodiffError("the valid split gave no curve to choose steps by", fix="give --steps")
    kept = {"checkpoint": model.digest, "split": found.get("split"), "curve": found["curve"]}
    with suppress(GenodiffError, OSError):  # a folder that cannot be written to costs time alone
        check_may_write(model.run, "give --steps")
        write_json(model.run / FILE, kept)
    return curve


def read_entry(path: Path, key: str | None) -> dict[str, Any]:
    """The JSON object of a file, or that of a key in it; empty where there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        found = found if key is None else found[key]
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def make_curve(evaluation: dict[str, Any]) -> Curve:
    """The curve of an evaluation; empty without one."""
    try:
        bins = [b for b in evaluation["curve"] if b["nats"] is not None]
        return [((b["rate_lo"] + b["rate_hi"]) / 2, float(b["nats"])) for b in bins]
    except (KeyError, TypeError, ValueError):
        return []
