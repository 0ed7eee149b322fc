"""The default network from end to end: train on the toy genome, evaluate, sample, report.

The toy genome is drawn from a source whose likelihood is known exactly. So the demo can check its
claims: the bound closes most of the gap between the order-0 line and the source, and does not pass
the source, which no model can.

A stage that was done with the same weights is not done again, so the same command resumes the demo.
Where time is limited, training has a fixed share of it, so that the same limit means the same run;
what is scored and sampled afterwards is cut to the time that is left.
"""

import json
import logging
import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch

from genodiff.data.toy import ToySource
from genodiff.errors import GenodiffError
from genodiff.evaluation.evaluate import evaluate
from genodiff.evaluation.evaluation_file import EVAL, write_evaluation
from genodiff.generate.request import SampleRequest
from genodiff.reports.evaluation import Evaluation
from genodiff.reports.findings import BASES, is_below_source, measure_gap_closed
from genodiff.reports.folder import read_folder
from genodiff.reports.html import write_report
from genodiff.runs.config import RunConfig
from genodiff.runs.model import TrainedModel, load_model
from genodiff.runs.resolve import resolve_config
from genodiff.training.run import train

log = logging.getLogger("genodiff")

PRESET = "caduceus-ps-83k"
GOAL = 0.9  # of the gap between order 0 and the source
SAMPLES, LENGTH, STEPS = 32, 512, 128
REPEATS = 4
TRAINING = 0.7
"""Share of a limit of time that training may take."""
_FIX = "run `genodiff doctor`; if it finds nothing, this is a bug"
_OTHER = 10.0  # seconds: counted lines, the report
_PARTS = (1, 2, 4, 8, 16)  # what is scored and sampled is divided by one of these
SETTINGS: dict[str, Any] = {
    "recipe": "toy",
    "data": {"seq_len": 256},
    # motifs under scattered masks need depth more than width, and few states
    "backbone": {"n_layer": 5, "d_state": 8},
    "optim": {"lr": 1.3e-2, "warmup_steps": 50, "betas": [0.9, 0.95]},
    "train": {
        "batch_size": 8,
        "max_steps": 1600,
        "validate_every": 250,
        "validate_windows": 128,
        "checkpoint_every": 250,
    },
}


class DemoResult(NamedTuple):
    """What the demo found."""

    run: Path
    steps: int
    max_steps: int
    evaluation: Evaluation
    closed: float  # share of the gap from order 0 to the source
    samples: int
    sampled_bases: int
    seconds: float  # this call

    def json(self) -> dict[str, Any]:
        """The object that `demo --json` prints."""
        e = self.evaluation
        return {
            "run": str(self.run),
            "steps": self.steps,
            "max_steps": self.max_steps,
            "order0_bits": e.markov()[0],
            "markov_bits": None if (best := e.best_line()) is None else best.bits,
            "bits_per_base": e.bits_per_base,
            "ci95_bits": e.ci95_bits,
            "source_bits": e.source_bits,
            "gap_closed": self.closed,
            "samples": self.samples,
            "sampled_bases": self.sampled_bases,
            "seconds": round(self.seconds, 1),
        }


def make_demo_config(
    *, seed: int = 1, minutes: float | None = None, settings: dict[str, Any] | None = None
) -> RunConfig:
    """The demo's configuration.

    The number of steps is fixed, so that the same seed gives the same run. `minutes` is a limit of
    the whole demo, for slow machines.
    """
    given = SETTINGS if settings is None else settings
    limit = None if minutes is None else TRAINING * minutes
    return resolve_config(
        {**given, "seed": seed, "train": {**given["train"], "max_minutes": limit}}, preset=PRESET
    )


def run_demo(
    out: Path,
    chosen: RunConfig,
    *,
    device: str = "cpu",
    offline: bool = False,
    argv: list[str] | None = None,
) -> DemoResult:
    """Train, evaluate, sample and report into `out`; or find what of that is done there already.

    Raises what training, evaluation and sampling raise. Whether the claims hold is `judge`'s to
    say.
    """
    began = time.monotonic()
    done = train(chosen, out, device=device, offline=offline, argv=argv)
    model = load_model(out, device)
    part = 1
    if (limit := chosen.train.max_minutes) is not None:
        left = 60 * limit / TRAINING - (time.monotonic() - began)
        part = choose_part(left, _time_rest(model))
    scored = _evaluated(model, out, offline, max(1, REPEATS // part))
    records, bases = _sampled(model, out, max(2, STEPS // part))
    log.info("%s: writing the report", out)
    write_report(out)
    closed, total = measure_gap_closed(scored), chosen.train.max_steps or done.step
    share = math.nan if closed is None else closed
    seconds = time.monotonic() - began
    return DemoResult(out, done.step, total, scored, share, records, bases, seconds)


def choose_part(left: float, full: float) -> int:
    """By what scoring and sampling, which take `full` seconds, are divided to fit `left` seconds.

    >>> choose_part(100, 80), choose_part(100, 200), choose_part(5, 80)
    (1, 4, 16)
    """
    return next((part for part in _PARTS if _OTHER + full / part <= left), _PARTS[-1])


def _time_rest(model: TrainedModel) -> float:
    """Seconds that scoring and sampling take in full, by a batch that is read now."""
    length = model.config.data.seq_len
    place = next(model.backbone.parameters()).device
    letters = torch.full((16, length), model.diffusion.mask_id, device=place)
    seconds = []
    with torch.no_grad():
        for _ in range(2):  # the first one warms up
            began = time.monotonic()
            model.backbone(letters)
            seconds.append(time.monotonic() - began)
    tokens = REPEATS * ToySource().lengths[-1] + SAMPLES * LENGTH * STEPS
    return seconds[-1] / letters.numel() * tokens


def judge(outcome: DemoResult) -> None:
    """Raise `GenodiffError` where the demo's claims do not hold.

    They are about the bound and the source, the samples, and the share of the gap. A run that the
    clock cut short has no goal to reach; its bound must hold all the same.
    """
    e = outcome.evaluation
    if is_below_source(e):
        what = (
            f"the bound, {e.bits_per_base:.4f} bits per base, is below the source's "
            f"{e.source_bits:.4f} by more than its interval, which cannot be: something leaks"
        )
        raise GenodiffError(what, file=outcome.run, fix=_FIX)
    found = read_folder(outcome.run).samples or []
    if len(found) != SAMPLES or any(
        len(s.sequence) != LENGTH or set(s.sequence) - BASES for s in found
    ):
        what = f"is not {SAMPLES} sequences of {LENGTH} letters A, C, G and T"
        raise GenodiffError(what, file=outcome.run / "samples.fa", fix="run `genodiff doctor`")
    if outcome.steps >= outcome.max_steps and not outcome.closed >= GOAL:
        what = f"the model has closed {outcome.closed:.0%} of the gap from order 0 to the source"
        raise GenodiffError(f"{what}, less than {GOAL:.0%}", file=outcome.run, fix=_FIX)


def _evaluated(model: TrainedModel, out: Path, offline: bool, repeats: int) -> Evaluation:
    """The score of the test split, of these weights, made or found again."""
    if (found := _find_evaluation(model, out)) is not None:
        return found
    log.info("%s: evaluating on the held-out contig", out)
    how: dict[str, Any] = {"repeats": repeats, "batch_size": 64, "offline": offline}
    write_evaluation(out, evaluate(model, "test", seed=model.config.seed, **how))
    found = _find_evaluation(model, out)
    if found is None:
        what = "holds no score of the test split"
        raise GenodiffError(what, file=out / EVAL, fix="run the demo again")
    return found


def _find_evaluation(model: TrainedModel, out: Path) -> Evaluation | None:
    """The demo's own evaluation of these weights."""
    folder = read_folder(out)
    for name, found in folder.evaluations.items():
        asked = (found.split, found.checkpoint, found.windows)
        same = asked == ("test", model.digest, found.windows_total)
        if same and found.markov_bits and folder.is_own(name):
            return found
    return None


def _sampled(model: TrainedModel, out: Path, steps: int) -> tuple[int, int]:
    """(records, bases) of samples.fa of these weights, made or found again."""
    target = out / "samples.fa"
    try:
        sidecar = json.loads(Path(f"{target}.json").read_text(encoding="utf-8"))
        lengths = [r["length"] for r in sidecar["records"]]
        same = (sidecar["checkpoint"], sidecar["seed"]) == (model.digest, model.config.seed)
        if target.is_file() and same and lengths == [LENGTH] * SAMPLES:
            return len(lengths), sum(lengths)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    log.info("%s: sampling %d sequences of %d bases", out, SAMPLES, LENGTH)
    told = SampleRequest(
        out, out=target, n=SAMPLES, length=LENGTH, steps=steps, batch_size=SAMPLES, fresh=True,
        force=True, seed=model.config.seed, device=str(next(model.backbone.parameters()).device),
    ).answer()  # fmt: skip
    lengths = [record["length"] for record in told["records"]]
    return len(lengths), sum(lengths)
