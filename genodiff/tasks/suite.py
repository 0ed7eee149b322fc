"""A suite of tasks: one YAML file, a row of it for each task.

The order of `classes` is the meaning of the labels. It is written down, never taken from a folder
listing. How the files of a suite are laid out is the name of a reader. A plug-in adds one so:

    @LAYOUTS.register("pairs")
    def read_pairs(files: TaskFiles) -> Parts: ...
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, field_validator, model_validator

from genodiff.alphabet import reverse_complement
from genodiff.data.fetch import fetch
from genodiff.data.recipe import Recipe, Source
from genodiff.domain import DomainName
from genodiff.errors import DataError, UsageError, did_you_mean
from genodiff.io.faidx import Genome
from genodiff.registry import Registry
from genodiff.settings import Settings, read_yaml
from genodiff.tasks.examples import Coordinates, Parts
from genodiff.tasks.labels import Kind
from genodiff.tasks.split_names import HOMOLOGY
from genodiff.tasks.suite_files import list_suite_files

Metric = Literal[
    "accuracy", "f1", "f1_macro", "mcc", "auroc", "auprc", "pearson", "spearman", "mse", "r2"
]


class ReferenceGenome(Source):
    """One FASTA file.

    A region is looked up under its own name, then `rename[name]`, then `prefix + name`. With
    `versioned`, names in the file end in `.1`, `.2`, ..., which the benchmark leaves out. `holdout`
    names the contigs that test under `--split chrom-holdout`.
    """

    prefix: str = ""
    rename: dict[str, str] = Field(default_factory=dict)
    versioned: bool = False
    holdout: tuple[str, ...] = ()

    def contig(self, region: str, known: dict[str, Any]) -> str | None:
        """The file's name for `region`, or None."""
        names = (region, self.rename.get(region, region), self.prefix + region)
        return next((name for name in names if name in known), None)


def find_reference(
    name: str, reference: ReferenceGenome, given: Mapping[str, Path], *, offline: bool
) -> Path:
    """The file of a reference: the user's, or the fetched one. Raises `DataError`."""
    if name in given:
        return given[name]
    source = Source.model_validate(reference.model_dump(include=set(Source.model_fields)))
    try:
        return fetch(Recipe(name=name, sources=(source,)), offline=offline)[0]
    except DataError as fault:
        fix = f"give your own copy with --reference {name}=FILE"
        raise DataError(fault.what, fix=fix) from None


def read_sequences(
    path: Path, reference: ReferenceGenome, coordinates: Coordinates
) -> Iterator[bytes]:
    """The upper-case sequence of each interval, on its strand.

    Raises `DataError` for a contig or an interval that the file does not have.
    """
    with Genome(path) as genome:
        cut = reference.versioned
        known = {name.rsplit(".", 1)[0] if cut else name: name for name in genome.contigs}
        names: dict[str, str] = {}
        places = zip(*(values.tolist() for values in coordinates), strict=True)
        for wanted, start, end, strand in places:
            if wanted not in names:
                found = reference.contig(wanted, known)
                if found is None:
                    what = f"has no contig '{wanted}', which the coordinates name"
                    raise DataError(what, file=path, fix="give the right assembly")
                names[wanted] = known[found]
            letters = genome.fetch(names[wanted], start, end).upper()
            yield bytes(reverse_complement(letters)) if strand == "-" else letters  # type: ignore[arg-type]


class Pool(Settings):
    """Tables of measured sequences without a published split (see `layouts.pooled`).

    `sequence` and `value` name the columns; without `header` they are the first and the second.
    `drop_n` leaves out sequences with N. `log`: the value becomes log(1 + x), below 0 that of 0.
    """

    files: Annotated[tuple[str, ...], Field(min_length=1)]
    sequence: str = "sequence"
    value: str = "value"
    header: bool = True
    drop_n: bool = False
    log: bool = False


class Task(Settings):
    """One prediction task.

    `classes` names label 0, 1, ..., or the yes/no answers; it is empty for regression. `holdout`
    names the contigs that test under chrom-holdout, where those of the references would not do.
    `metrics[0]` is the one that the published table reports. Longer sequences are cut to their
    first `max_length` bases, texts to so many tokens. `oriented`: every sequence is in the
    direction of its gene, so its reverse complement is not the same example. `parts`: the head
    reads the means of so many stretches, more than 1 if the signal is at a known position. `counts`
    gives, per part, the published number of examples of each class; data that differ are not the
    official ones.
    """

    suite: str
    name: str
    domain: DomainName = "dna"
    kind: Kind = "binary"
    classes: tuple[str, ...] = ("negative", "positive")
    metrics: tuple[Metric, ...] = ("accuracy",)
    max_length: Annotated[int, Field(gt=0)]
    licence: str = ""
    source: str = ""
    note: str = ""
    counts: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    lengths: tuple[int, int] | None = None
    references: dict[str, str] = Field(default_factory=dict)
    holdout: tuple[str, ...] = ()
    oriented: bool = False
    parts: Annotated[int, Field(ge=1, le=64)] = 1
    pool: Pool | None = None

    @model_validator(mode="after")
    def _classes_fit_the_kind(self) -> "Task":
        n = len(self.classes)
        wanted = {"binary": n == 2, "multiclass": n > 2, "multilabel": n > 0, "regression": n == 0}
        if not wanted[self.kind]:
            raise ValueError(f"a {self.kind} task cannot have {n} classes")
        if len(set(self.classes)) != n:
            raise ValueError("duplicate class")
        return self

    @property
    def n_out(self) -> int:
        """Numbers of a prediction: one for each class, or one value."""
        return max(1, len(self.classes))


class Rows(Settings):
    """Rows of a suite's table: those whose columns have these values.

    `{task}` stands for the name of the task.
    """

    file: str
    where: dict[str, str] = Field(default_factory=dict)


class Suite(Settings):
    """The tasks of one benchmark, the layout of its files, where they come from, and its genomes.

    `url` has `{task}`, `{part}` and, for coordinates, `{class}` in it; empty where the data cannot
    be fetched by a command. `splits` are those that the reader has beside the official one.
    """

    suite: str
    domain: DomainName = "dna"
    description: str = ""
    layout: str = "parts"
    splits: tuple[Literal["local", "partial"], ...] = ()
    url: str = ""
    train: Rows | None = None
    test: Rows | None = None
    references: dict[str, ReferenceGenome] = Field(default_factory=dict)
    tasks: tuple[Task, ...]

    @field_validator("layout")
    @classmethod
    def _layout_is_known(cls, layout: str) -> str:
        LAYOUTS[layout]
        return layout

    def resolve_split(self, split: str) -> str:
        """The split that is meant: `official` is `homology` where none is published."""
        return HOMOLOGY if split == "official" and self.layout == "pooled" else split

    def find(self, name: str) -> Task:
        """The task of that name. Raises `UsageError` for an unknown one."""
        tasks = {task.name: task for task in self.tasks}
        if name not in tasks:
            what = f"no task '{name}' in {self.suite}; {did_you_mean(name, tasks)}"
            raise UsageError(what, fix=f"see `genodiff finetune list {self.suite}`")
        return tasks[name]


class TaskFiles(NamedTuple):
    """The files of a task, and what a reader is asked for."""

    suite: Suite
    task: Task
    folder: Path
    """The folder (or file) with the suite's data."""
    split: str = "official"
    """"official", or one of `suite.splits`."""
    references: Mapping[str, Path] = {}
    """The user's own genome files by reference name."""
    offline: bool = False
    sequences: bool = True
    """False: coordinates stay without sequences."""

    @property
    def home(self) -> Path:
        """The folder of the task inside the suite's, or that itself."""
        own = self.folder / self.task.name
        return own if own.is_dir() else self.folder

    def find_genome(self, name: str) -> Path:
        """The file of a reference genome. Raises `DataError`."""
        genome = self.suite.references[name]
        return find_reference(name, genome, self.references, offline=self.offline)


def find_suite_file(folder: Path, name: str) -> Path:
    """A file of a suite by its name in a folder, or up to two folders below it.

    Raises `DataError` where it is not there, or where two of its name are below.
    """
    if folder.is_file() and folder.name == Path(name).name:
        return folder
    if (folder / name).is_file():
        return folder / name
    below = sorted(p for up in ("*", "*/*") for p in folder.glob(f"{up}/{name}") if p.is_file())
    if len(below) == 1:
        return below[0]
    if below:
        what = f"{name} stands in {below[0].parent} and in {below[1].parent}"
        raise DataError(what, file=folder, fix="give one of them with --data")
    what = f"holds no {name}, nor do the folders below it"
    raise DataError(what, file=folder, fix="give the folder with this file with --data")


LAYOUTS: Registry[Callable[[TaskFiles], Parts]] = Registry(
    "layout", package="genodiff.tasks.layouts"
)
"""The reader of each layout."""


def load_suite(suite: str) -> Suite:
    """The suite of that name. Raises `UsageError` for an unknown one."""
    files = list_suite_files()
    if suite not in files:
        fix = "see `genodiff finetune list`"
        raise UsageError(f"no suite '{suite}'; {did_you_mean(suite, files)}", fix=fix)
    return _read_suite(files[suite])


def list_task_names(suite: str) -> list[str]:
    """The names of a suite's tasks, in the order of its published table."""
    return [task.name for task in load_suite(suite).tasks]


def choose_tasks(suite: str, word: str = "all") -> list[str]:
    """The tasks that a word means: one name, several with commas, or all of the suite.

    Raises `UsageError` for an unknown name.
    """
    known = list_task_names(suite)
    if word == "all":
        return known
    chosen = [name.strip() for name in word.split(",") if name.strip()]
    for name in chosen:
        if name not in known:
            raise UsageError(f"no task '{name}' in {suite}; {did_you_mean(name, known)}")
    if not chosen:
        raise UsageError("--task is empty", fix=f"give one of {', '.join(known)}, or all")
    return chosen


def _read_suite(path: Path) -> Suite:
    values: Any = read_yaml(path)
    if isinstance(values, dict):
        defaults = {
            "suite": values.get("suite"),
            "domain": values.get("domain", "dna"),
            **values.pop("defaults", {}),
        }
        values["tasks"] = [
            {**defaults, **row} if isinstance(row, dict) else row for row in values.get("tasks", [])
        ]
        for task in values["tasks"]:
            if isinstance(task.get("references"), str):
                classes = task.get("classes", Task.model_fields["classes"].default)
                task["references"] = dict.fromkeys(classes, task["references"])
    return Suite.parse(values, file=path)
