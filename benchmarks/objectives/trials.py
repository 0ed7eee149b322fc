"""A comparison: models trained with equal tokens and seeds, scored on the same windows.

A spec is a YAML file:

    title: Yeast, 470 k parameters
    recipe: sacCer3                     what `genodiff train` takes; --fasta (or --text) of
                                        `run.py` goes in its place
    domain: dna                         or text, which is measured in bits per byte
    tokens: 20000000                    that each run sees; its steps follow from its batch size
    seeds: [1]
    settings: {seq_len: 1024, ...}      of every run, by the names that `genodiff train` has for
                                        them
    rows:
      - {name: AR, settings: {preset: mamba-470k, objective: ar}, published: 3.067}
      - {name: MDLM, settings: {preset: caduceus-ps-470k}}
      - {name: D3PM half, settings: {objective: d3pm}, tokens: 10000000}   in place of `tokens`
    against: MDLM                       whose figure is subtracted (default: the first row's)
    split: test                         and, optionally, `windows` (at most so many, evenly spread)
                                        and `repeats`
    schedules: [linear, cosine]         estimate the bound of the first MDLM row under each, for
                                        mean and variance

Each (row, seed) is a run folder OUT/runs/NAME-seedN, trained by the ordinary `train`, so a
comparison that was stopped can be resumed. Its nats on every window are kept in OUT/scores, so that
differences are taken window by window.
"""

import logging
import math
import re
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from genodiff.data.windows import Windows
from genodiff.diffusion.schedule import SCHEDULES
from genodiff.domain import DomainName
from genodiff.errors import UsageError, did_you_mean
from genodiff.evaluation.bound import Progress
from genodiff.evaluation.eval_data import open_data
from genodiff.evaluation.request import EvalOptions
from genodiff.runs.config import RunConfig
from genodiff.runs.model import TrainedModel, load_model
from genodiff.runs.resolve import expand_names, merge_settings, resolve_config
from genodiff.settings import Settings, read_yaml
from genodiff.statistics.interval import Floats
from genodiff.studies.run_comparison import TrialScore, read_score, score_windows, write_score
from genodiff.training.run import train

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from trial_schedules import ScheduleFigure, schedule_figures  # noqa: E402

_log = logging.getLogger("genodiff")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+=-]*")


class TrialRow(Settings):
    """One model: what differs from the others."""

    name: str
    settings: dict[str, Any] = Field(default_factory=dict)
    published: Annotated[
        float | None,
        Field(gt=0, description="The perplexity that a paper gives, to stand beside it."),
    ] = None
    tokens: Annotated[
        int | None,
        Field(ge=1, description="Tokens of each run of this row, in place of the comparison's."),
    ] = None


class TrialSpec(Settings):
    """A comparison."""

    title: str
    recipe: str
    domain: DomainName = "dna"
    fasta: str | None = None
    text: str | None = None
    tokens: Annotated[int, Field(ge=1)]
    seeds: Annotated[tuple[int, ...], Field(min_length=1)] = (1,)
    settings: dict[str, Any] = Field(default_factory=dict)
    rows: Annotated[tuple[TrialRow, ...], Field(min_length=1)]
    against: str | None = None
    split: Literal["train", "valid", "test"] = "test"
    windows: Annotated[int | None, Field(ge=1)] = None
    repeats: Annotated[int, Field(ge=1)] = 1
    schedules: tuple[str, ...] = ()
    schedule_repeats: Annotated[int, Field(ge=2)] = 8

    @model_validator(mode="after")
    def _names_are_one_each(self) -> Self:
        names = [row.name for row in self.rows]
        for name in names:
            if not _NAME.fullmatch(name):
                raise ValueError(f"the row name '{name}' cannot be the name of a folder")
        if len({name.lower() for name in names}) != len(names) or len(set(self.seeds)) != len(
            self.seeds
        ):
            raise ValueError("a row's name or a seed stands twice")
        if self.against is not None and self.against not in names:
            raise ValueError(
                f"no row '{self.against}' to set against; {did_you_mean(self.against, names)}"
            )
        for name in self.schedules:
            if name not in SCHEDULES:
                raise ValueError(f"no schedule '{name}'; {did_you_mean(name, SCHEDULES)}")
        return self


class TrialResult(NamedTuple):
    """A row with all of its runs: what the page shows."""

    row: TrialRow
    config: RunConfig
    runs: list[Path]
    scores: list[TrialScore]
    figure: str
    parameters: int
    seconds: float
    passes: int
    """Of the network over a window in each step: two for paired strands, two for D3PM's loss."""


def read_spec(path: Path, over: dict[str, Any]) -> TrialSpec:
    """The spec in a YAML file, with `over` in place of what it says.

    Raises `UsageError` naming the file.
    """
    values = read_yaml(path)
    if isinstance(values, dict):
        values = values | over
    return TrialSpec.parse(values, file=path)


def plan(spec: TrialSpec, file: Path) -> list[tuple[TrialRow, int, RunConfig]]:
    """Every run of a spec with its configuration, seed by seed.

    Raises `UsageError` where runs cannot be compared.
    """
    found = []
    for seed in spec.seeds:
        for row in spec.rows:
            top = {"recipe": spec.recipe, "seed": seed, "domain": spec.domain}
            top |= {
                name: value
                for name in ("fasta", "text")
                if (value := getattr(spec, name)) is not None
            }
            given = merge_settings(
                expand_names(spec.settings, file=file), expand_names(row.settings, file=file)
            )
            if given.get("train", {}).keys() & {"max_steps", "max_minutes"}:
                raise UsageError(
                    "steps and minutes follow from tokens",
                    file=file,
                    fix="leave max_steps and max_minutes out",
                )
            config = resolve_config(given | top, file=file)
            per_step = config.train.batch_size * config.data.seq_len
            steps = max(1, round((row.tokens or spec.tokens) / per_step))
            config = config.model_copy(
                update={"train": config.train.model_copy(update={"max_steps": steps})}
            )
            found.append((row, seed, config))
    if spec.schedules and not any(_has_schedules(config) for _, _, config in found):
        raise UsageError(
            "schedules: no row is MDLM in continuous time",
            file=file,
            fix="leave schedules out, or add such a row",
        )
    lengths = {config.data.seq_len for _, _, config in found}
    if len(lengths) > 1:
        what = (
            f"windows of {' and '.join(map(str, sorted(lengths)))} tokens cannot be set "
            f"side by side"
        )
        raise UsageError(what, file=file, fix="give all rows the same seq_len")
    return found


def run_comparison(
    spec: TrialSpec,
    file: Path,
    out: Path,
    *,
    device: str = "cpu",
    offline: bool = False,
    progress: Progress | None = None,
) -> list[TrialResult]:
    """Train and score what is missing, and return the rows in the spec's order.

    Raises as `train` and `evaluate` do.
    """
    runs = plan(spec, file)
    found: dict[str, list[tuple[RunConfig, Path, TrialScore, TrainedModel, float]]] = {
        row.name: [] for row in spec.rows
    }
    for i, (row, seed, config) in enumerate(runs):
        folder = out / "runs" / f"{row.name.replace(' ', '_')}-seed{seed}"
        _log.info("%s, seed %d: run %d of %d", row.name, seed, i + 1, len(runs))
        done = train(config, folder, device=device, offline=offline)
        model = load_model(folder, device=device)
        score = _score(model, spec, out / "scores" / f"{folder.name}.json", offline, progress)
        found[row.name].append((config, folder, score, model, done.seconds))
    return [
        TrialResult(
            row,
            found[row.name][0][0],
            [folder for _, folder, *_ in found[row.name]],
            [score for _, _, score, *_ in found[row.name]],
            found[row.name][0][3].objective.figure,
            sum(p.numel() for p in found[row.name][0][3].backbone.parameters()),
            sum(seconds for *_, seconds in found[row.name]),
            _count_passes(found[row.name][0][3]),
        )
        for row in spec.rows
    ]


def _count_passes(model: TrainedModel) -> int:
    strands = 2 if getattr(model.config.backbone, "paired", False) else 1
    return model.objective.evaluations * strands


def compare_schedules(
    spec: TrialSpec, entries: list[TrialResult], *, device: str = "cpu", offline: bool = False
) -> list[ScheduleFigure]:
    """The continuous-time bound of one network under each schedule of the spec.

    The network is the first run of the first row of MDLM.
    """
    if not spec.schedules:
        return []
    entry = next(entry for entry in entries if _has_schedules(entry.config))
    model = load_model(entry.runs[0], device=device)
    found = schedule_figures(
        model, _windows(model, spec, offline)[0], spec.schedules, spec.schedule_repeats
    )
    return [figure._replace(row=entry.row.name) for figure in found]


def _has_schedules(config: RunConfig) -> bool:
    """Whether the network is trained on the bound in continuous time, which no schedule changes."""
    continuous = config.diffusion.time_steps is None
    return continuous and config.diffusion.objective in ("mdlm", "uniform")


def _windows(model: TrainedModel, spec: TrialSpec, offline: bool) -> tuple[Windows, Floats | None]:
    """What is scored, and the bytes of each window of text."""
    windows = open_data(model, EvalOptions(split=spec.split, offline=offline)).windows
    chosen = windows if spec.windows is None else windows.spread(spec.windows)
    return chosen, chosen.bytes()


def _score(
    model: TrainedModel, spec: TrialSpec, file: Path, offline: bool, progress: Progress | None
) -> TrialScore:
    """The figure on each window, read from `file` if the same weights were scored likewise."""
    asked = {
        "checkpoint": model.digest,
        "split": spec.split,
        "repeats": spec.repeats,
        "windows": spec.windows,
    }
    if (kept := read_score(file, asked)) is not None:
        return kept
    windows, size = _windows(model, spec, offline)
    nats, tokens = score_windows(model, windows, 1, spec.repeats, progress)
    score = TrialScore(nats, tokens, tokens if size is None else size)
    bits = score.nats.sum() / score.tokens.sum() / math.log(2)
    _log.info("%s: %.4f bits per token on %d windows", file.stem, bits, len(windows))
    write_score(file, asked, score)
    return score
