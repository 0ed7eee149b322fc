"""What `finetune` is asked: data, models, and how a fit differs from its protocol. No torch.

The data of a suite and one's own are classes of fields: each verb of the command line has one.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge

from genodiff.errors import DataError, UsageError
from genodiff.io.target import check_folder, check_target, read_json_object
from genodiff.jobs.options import Device, Force, Margin, Offline, Plan
from genodiff.jobs.request import Option, Request, find_named, list_fields
from genodiff.jobs.verbs import verb
from genodiff.runs.run_paths import check_input, locate
from genodiff.tasks.split_names import Level, OwnSplit, Split, choose_split, refuse_single_table
from genodiff.tasks.suite_files import describe_suites, list_suite_files

_log = logging.getLogger("genodiff")
ROWS_HELP = "One JSON object per row on stdout in place of the table."
FILES = ("results.jsonl", "tasks.json", "sessions.json", "units")
"""What a sweep keeps in its folder."""
PAGES = ("RESULTS.md", "report.html")
"""What is written of a sweep in its folder."""

TaskKind = Literal["binary", "multiclass", "multilabel", "regression"]
Method = Literal["full", "frozen"]
Similarity = Annotated[
    float | None,
    Option(
        "With --split homology: share of common 24-mers from which sequences are similar [0.5]."
    ),
]


@dataclass(frozen=True, kw_only=True)
class TableFields:
    """How a table of one's own sequences is read."""

    test: Annotated[
        str | Path | None,
        Option("The test part; not needed if the first file has both, or with --test-share."),
    ] = None
    test_share: Annotated[
        float | None,
        Option(
            "Share of one table used for testing, such as 0.2: similar sequences stay "
            "together, and the same ones test each time."
        ),
    ] = None
    valid: Annotated[
        str | Path | None, Option("A validation part for every seed, instead of 10 % of train.")
    ] = None
    sequence: Annotated[str | None, Option("Column of sequences.")] = None
    label: Annotated[
        Sequence[str], Option("Column of labels; several make a multi-label task.")
    ] = ()
    kind: Annotated[TaskKind | None, Option("Kind of labels.")] = None
    similarity: Similarity = None
    drop_missing: Annotated[
        bool,
        Option(
            "Drop, and count, rows without a label, a sequence or a position (empty, NA, nan, inf)."
        ),
    ] = False

    def name_files(self, train: str | Path) -> dict[str, Any]:
        """The values of `TableFiles`, but for the task's name and metric."""
        names = "test valid sequence kind max_length test_share drop_missing".split()
        values = {name: getattr(self, name) for name in names} | {"train": Path(train)}
        plain = {name: str(x) if isinstance(x, Path) else x for name, x in values.items()}
        return plain | {"labels": tuple(self.label)}


@dataclass(frozen=True, kw_only=True)
class OwnData(TableFields):
    """One's own labelled sequences."""

    what: Annotated[
        str | Path,
        Option(
            "CSV, TSV, parquet or FASTA with labels, or a folder or zip of class folders.",
            ("--train",),
        ),
    ] = field(kw_only=False)
    name: Annotated[str | None, Option("Name of the task.")] = None
    metric: Annotated[str | None, Option("Metric that chooses the epoch and heads the table.")] = (
        None
    )
    split: Annotated[
        OwnSplit,
        Option(
            "The parts as given, without equal and overlapping sequences (dedup), or split "
            "again with similar sequences (homology) or chromosomes held apart."
        ),
    ] = "official"


@dataclass(frozen=True, kw_only=True)
class SuiteFiles:
    """Where the data of a suite are."""

    similarity: Similarity = None
    data: Annotated[str | Path | None, Option("Folder with the suite's data.")] = None
    reference: Annotated[
        Mapping[str, str] | None,
        Option("NAME=FASTA of a genome; repeatable: --reference hg38=hg38.fa."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class SuiteData(SuiteFiles):
    """Tasks of a suite."""

    what: Annotated[
        str | Path,
        Option("A suite (genomic-benchmarks, gue, nt, glue, ...), or your own sequences."),
    ] = field(kw_only=False)
    task: Annotated[str, Option("Name of a task, several with commas, or all.")] = "all"
    split: Annotated[
        Split,
        Option(
            "Split: as published, without equal and overlapping sequences (dedup), or with "
            "similar sequences (homology) or chromosomes held apart; local and partial are not"
            " comparable with published numbers."
        ),
    ] = "official"


@dataclass(frozen=True, kw_only=True)
class FitFlags:
    """Settings of a fit. The protocol gives the value of those left out."""

    rc: Annotated[
        Literal["auto", "conjoin", "average", "augment", "none"] | None,
        Option(
            "Reverse complement. auto: none for oriented tasks, conjoin for networks of both "
            "strands (PS), else average."
        ),
    ] = None
    epochs: Annotated[int | None, Option("Passes over the train part.")] = None
    max_steps: Annotated[int | None, Option("Maximum number of steps, instead of epochs.")] = None
    batch_size: Annotated[int | None, Option("Examples per step.")] = None
    lr: Annotated[float | None, Option("Highest learning rate.", ("--lr", "--learning-rate"))] = (
        None
    )
    weight_decay: Annotated[float | None, Option("AdamW's weight decay.")] = None
    head: Annotated[
        str | None,
        Option(
            "Pooling over positions: mean, parts, attention, conv, or auto, which validation "
            "chooses once for all seeds [auto]."
        ),
    ] = None
    parts: Annotated[
        int | None, Option("For the head parts: number of stretches with a mean each [7].")
    ] = None
    shift: Annotated[
        int | None,
        Option("In training, cut up to this many bases at each end, drawn anew each epoch."),
    ] = None
    dropout: Annotated[float | None, Option("Share of pooled features dropped in training.")] = None
    mask_share: Annotated[
        float | None, Option("In training, mask this share of the bases, drawn anew each epoch.")
    ] = None
    patience: Annotated[
        int | None, Option("Stop after this many epochs without a better validation.")
    ] = None
    ema: Annotated[
        float | None,
        Option(
            "Decay of a moving average of the weights, such as 0.998; validation uses it, and "
            "it is saved."
        ),
    ] = None
    adapter: Annotated[
        str | None,
        Option(
            "Train few weights of a trained network instead of all, with method full: lora, "
            "dora, or with options, lora:r=8,alpha=16,on=in_proj+out_proj. Saved fits are "
            "merged."
        ),
    ] = None
    precision: Annotated[
        Literal["fp32", "bf16"] | None, Option("Number format; bf16 uses autocast.")
    ] = None
    max_length: Annotated[
        int | None, Option("Read at most this many bases, or tokens of text (default: the task's).")
    ] = None


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """Models, methods, seeds and output folder of a sweep."""

    model: Annotated[
        Sequence[str],
        Option(
            "Repeatable: RUN or NAME=RUN, scratch, scratch:PRESET, a baseline's name, "
            "or baselines [baselines, scratch]."
        ),
    ] = ("baselines", "scratch")
    method: Annotated[
        Method | Sequence[Method],
        Option("Method: train all weights (full), or only the head (frozen); repeatable [full]."),
    ] = ("full",)
    max_train: Annotated[
        int | None,
        Ge(10),
        Option("Train on at most this many examples, drawn once and the same for all models."),
    ] = None
    seeds: Annotated[
        int, Ge(1), Option("Run seeds 1 to N; each has its own 90/10 split and order.")
    ] = 5
    jobs: Annotated[
        int, Ge(1), Option("Fits that run in parallel, on the CPU cores or the GPUs.")
    ] = 1
    out: Annotated[
        str | Path | None,
        Option(
            "Folder of the sweep (default: runs/finetune-SUITE); an existing one is resumed.",
            ("--out", "-o"),
        ),
    ] = None
    margin: Margin = None
    search: Annotated[
        int, Ge(0), Option("Let optuna try this many settings on the first seed's validation part.")
    ] = 0
    exclude_overlap: Annotated[
        Level | None,
        Option(
            "Exclude, for all models, the test sequences of which pretraining saw some, half "
            "[half, without a value] or all 24-mers.",
            alone="half",
        ),
    ] = None
    keep_weights: Annotated[
        bool | None,
        Option(
            "Save each fit for `genodiff predict` [every new one]; when given, fits done "
            "without weights are repeated. --no-keep saves none.",
            negative="--no-keep",
        ),
    ] = None
    device: Device = "auto"
    offline: Offline = False
    plan: Plan = False
    force: Force = False


@verb("finetune table", function="finetune", help="Fine-tune on your own labelled sequences.")
@dataclass(frozen=True, kw_only=True)
class SweepRequest(FitFlags, SweepOptions, SuiteData, OwnData, Request[dict[str, Any]]):
    """Fit every model to every task with every seed; returns the results as plain values.

    `what` is a suite (genomic-benchmarks, gue, nt, glue, ...), or your own labelled sequences: a
    table or FASTA with its `test` (and `valid`) part, or a folder or zip with both. `task`, `data`
    (the folder of a suite's files) and `reference` (NAME → FASTA) are for suites; `name`,
    `sequence`, `label`, `kind`, `metric`, `test_share` and `drop_missing` for your own. Validation
    on seed 1 chooses the `head` if it is None or "auto", on more seeds if it has few examples.

    The folder `out` is resumed if it exists. Returns `out`, `rows` (those of its results.jsonl that
    belong to this plan), `files` (RESULTS.md and report.html) and `comparisons`: for each task,
    paired differences with 95 % intervals over seeds and test examples, Holm's corrected p values,
    and a verdict. `ensembles` are rows too: the mean prediction of a row's seeds.

    `keep_weights`: None saves each new fit for `genodiff.predict`, True repeats fits done without
    weights, False saves none. With `plan` nothing is trained or written, and units, seconds and
    bytes are returned. Raises `UsageError`, `DataError`, `CheckpointError`, `GenodiffError` if a
    unit failed.

    >>> genodiff.finetune("train.csv", test="test.csv", model=["yeast", "baselines"])["rows"]
    """

    work: ClassVar[str] = "genodiff.studies.sweeping:finetune"
    json_help: ClassVar[str] = ROWS_HELP
    flag_parts: ClassVar[tuple[type, ...]] = (OwnData, SweepOptions, FitFlags)

    @property
    def words(self) -> list[str]:
        """The models as they are named."""
        return [self.model] if isinstance(self.model, str) else list(self.model)

    @property
    def methods(self) -> tuple[str, ...]:
        """What is trained, one for each line."""
        return (self.method,) if isinstance(self.method, str) else tuple(self.method)

    @property
    def over(self) -> dict[str, Any]:
        """What is given in the place of the protocol's."""
        named = {one.name: getattr(self, one.name) for one in list_fields(FitFlags)}
        return {
            name: value
            for name, value in named.items()
            if value is not None and (name, value) != ("head", "auto")
        }

    @property
    def choose_head(self) -> bool:
        """Whether validation chooses the head."""
        return self.head in (None, "auto") and self.parts is None

    @property
    def is_suite(self) -> bool:
        """Whether the data are those of a suite."""
        return isinstance(self.what, str) and self.what in list_suite_files()

    def check_files(self) -> None:
        """Raises `UsageError` and `DataError` for one's own files, as far as none is read."""
        if self.is_suite:
            return
        if self.data is not None or self.reference:
            raise UsageError("data and reference are for suites", fix="leave them out")
        choose_split(self.split, self.test_share)
        refuse_single_table(self.what, self.test, self.valid, self.test_share)
        for file in (self.what, self.test, self.valid):
            check_input(file)

    def check_out(self, folder: Path) -> None:
        """Raises `UsageError` where the sweep would overwrite what genodiff did not write."""
        check_folder(folder, FILES, own=is_sweep(folder), force=self.force)
        for name in PAGES:
            check_target(folder / name, force=self.force)

    def answer(self, *given: Any) -> dict[str, Any]:
        """The rows, or what they would take. What can be judged without torch is judged first."""
        self.check_files()
        return super().answer(find_named("genodiff.studies.sweep_data:judge")(self))

    def list_rows(self, answer: Any) -> Iterable[Any]:
        """The rows and their ensembles, or the plan."""
        return [answer] if self.plan else [*answer["rows"], *answer["ensembles"]]

    def show(self, answer: Any) -> None:
        """The table of the rows and where their pages are, or the plan."""
        if self.plan:
            lines = find_named("genodiff.finetuning.estimate:format_estimate")(answer)
        else:
            tables = answer["rows"], answer["comparisons"], answer["ensembles"]
            lines = find_named("genodiff.reports.sweep_results:format_summary")(*tables)
        print(*lines, sep="\n", flush=True)
        for path in answer.get("files", ()):
            _log.info("%s", path)


@verb("finetune *", function="")
@dataclass(frozen=True, kw_only=True)
class SuiteRequest(SweepRequest):
    """Fit every model to the tasks of a suite."""

    flag_parts: ClassVar[tuple[type, ...]] = (SuiteData, SweepOptions, FitFlags)

    @classmethod
    def list_variants(cls) -> dict[str, str]:
        """The suites, with what each is."""
        return describe_suites()


@verb("finetune report", function="")
@dataclass(frozen=True, kw_only=True)
class SweepReportRequest(Request[list[Path]]):
    """Write RESULTS.md and report.html of a sweep again."""

    json_help: ClassVar[str] = ""

    out: Annotated[Path | str, Option("Folder of a sweep.", ("--out",), is_word=True)] = field(
        kw_only=False
    )
    margin: Margin = None
    force: Force = False

    def answer(self, *given: Any) -> list[Path]:
        """Their paths. Raises `DataError` for a folder that is no sweep's, `UsageError`."""
        folder = locate(self.out, there=False)
        if not (folder / "results.jsonl").exists():
            raise DataError("holds no results.jsonl", file=folder, fix="give the folder of a sweep")
        for name in PAGES:
            check_target(folder / name, force=self.force)
        write = find_named("genodiff.reports.benchmark:write_benchmark")
        files: list[Path] = write(folder, self.margin)["files"]
        return files

    def show(self, answer: Any) -> None:
        """Where the pages are."""
        for path in answer:
            _log.info("%s", path)


def is_sweep(folder: Path) -> bool:
    """Whether genodiff wrote the results of a folder."""
    return isinstance(read_json_object(folder / "sessions.json").get("sessions"), list)
