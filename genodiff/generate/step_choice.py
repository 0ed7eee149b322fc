"""How many steps a wanted loss of bits asks for, by the curve of C_k / k.

Positions that a step reveals together are drawn as if independent. What that costs of T steps is
NELBO_T − NELBO_∞ (`bits_lost`), and the curve tells it for every T and schedule.
The curve is measured once on the valid split. It stands in the run's evaluation, or beside it in
`mask_curve.json` under the hash of the model's weights, and another model's is never read.
"""

import json
import logging
import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from genodiff.diffusion.sampler import revealed_share
from genodiff.diffusion.schedule import Schedule
from genodiff.errors import GenodiffError, UsageError
from genodiff.generate.sample import choose_sampler
from genodiff.generate.sampling import Sampling
from genodiff.io.atomic import write_json
from genodiff.io.progress import ProgressDisplay
from genodiff.jobs.request import find_named
from genodiff.runs.run_paths import check_may_write
from genodiff.runs.trained_model import TrainedModel

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
