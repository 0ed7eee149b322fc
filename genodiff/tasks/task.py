"""Tasks: what is to be predicted from a sequence, by which metric, with which data, and the seeds'
splits of its train part.

A suite is one YAML file in `data_recipes/tasks/`; a task is one row of it. The order of `classes`
is the meaning of the labels and is written down, never taken from a folder listing.

Protocol: the test part is fixed. For each seed the train part is split 90/10 at random, as in the
Caduceus paper (Schiff et al. 2024, App. D.2), unless the benchmark publishes a validation part of
its own, which then serves every seed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from genodiff.counter import Purpose, uniforms
from genodiff.errors import DataError, UsageError
from genodiff.settings import Settings, did_you_mean, read_yaml
from genodiff.tasks.download import fetch_task
from genodiff.tasks.examples import Examples, class_counts
from genodiff.tasks.genomic_benchmarks import Genomes, read_local, read_official, read_partial
from genodiff.tasks.glue import read_glue
from genodiff.tasks.labels import Kind
from genodiff.tasks.parts import Parts, Selection, read_parts, read_selection
from genodiff.tasks.reference import ReferenceGenome
from genodiff.tasks.resplit import SPLITS, resplit
from genodiff.tasks.suite_files import suite_files

Domain = Literal["dna", "text"]
Metric = Literal[
    "accuracy", "f1", "f1_macro", "mcc", "auroc", "auprc", "pearson", "spearman", "mse", "r2"
]

VALID_SHARE = 10
"""One in so many train examples validates."""


class Task(Settings):
    """One prediction task. `classes` names label 0, 1, ... (or the yes/no answers; empty for
    regression).

    `holdout` names the contigs that test under chrom-holdout, where those of the references would
    not do. `metrics[0]` is the one that the published table reports. Longer sequences are cut to
    their first `max_length` bases, texts to so many tokens. `oriented` says that every sequence
    stands in the direction of its gene, so that its reverse complement is no equal example;
    `parts`, of how many stretches the head reads the means: more than 1 where what decides stands
    at a known place. `counts` gives, per part, the published number of examples of each class; data
    that differ are not the official ones.
    """

    suite: str
    name: str
    domain: Domain = "dna"
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

    @model_validator(mode="after")
    def _classes_fit_the_kind(self) -> "Task":
        n = len(self.classes)
        wanted = {"binary": n == 2, "multiclass": n > 2, "multilabel": n > 0, "regression": n == 0}
        if not wanted[self.kind]:
            raise ValueError(f"a {self.kind} task cannot have {n} classes")
        if len(set(self.classes)) != n:
            raise ValueError("a class stands twice")
        return self


class Rows(Settings):
    """Rows of a suite's table: those whose columns have these values; `{task}` stands for the
    task's name.
    """

    file: str
    where: dict[str, str] = Field(default_factory=dict)

    def of(self, task: str) -> Selection:
        """The selection for one task."""
        return Selection(
            self.file,
            tuple((column, value.replace("{task}", task)) for column, value in self.where.items()),
        )


class Suite(Settings):
    """The tasks of one benchmark, how its files are laid out, where they come from and which
    genomes they point into.

    `url` has `{task}`, `{part}` and, for coordinates, `{class}` in it; empty where the data cannot
    be fetched by a command.
    """

    suite: str
    domain: Domain = "dna"
    description: str = ""
    layout: Literal["genomic-benchmarks", "parts", "table", "glue"] = "parts"
    url: str = ""
    train: Rows | None = None
    test: Rows | None = None
    references: dict[str, ReferenceGenome] = Field(default_factory=dict)
    tasks: tuple[Task, ...]


class TaskData(NamedTuple):
    """A task with its examples. `valid_index` (into `train`) is the published validation part,
    where there is one.

    `split` says which split this is (official, local, chrom-holdout, dedup, ...); `notes` are to be
    shown with every number.
    """

    task: Task
    train: Examples
    test: Examples
    split: str
    notes: tuple[str, ...] = ()
    valid_index: NDArray[np.int64] | None = None


def seed_split(data: TaskData, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(train, valid) rows of `data.train` for `seed`, both sorted: 90/10 at random, or the
    published validation part.

    A pure function of the seed and the number of examples. Raises `DataError` for fewer than two
    examples.
    """
    if data.valid_index is not None:
        return np.setdiff1d(np.arange(data.train.n), data.valid_index), np.sort(data.valid_index)
    n = data.train.n
    if n < 2:
        raise DataError(
            f"task {data.task.name}: {n} train examples cannot be split", fix="give at least two"
        )
    order = np.argsort(uniforms(seed, Purpose.FINETUNE_SPLIT, 0, n), kind="stable")
    n_valid = max(1, n // VALID_SHARE)
    return np.sort(order[n_valid:]), np.sort(order[:n_valid])


def subsample_train(data: TaskData, n: int) -> TaskData:
    """The task with `n` of its train examples, the same ones for every seed and model; a published
    validation part stays.
    """
    pool = (
        np.arange(data.train.n)
        if data.valid_index is None
        else np.setdiff1d(np.arange(data.train.n), data.valid_index)
    )
    if len(pool) <= n:
        return data
    order = np.argsort(uniforms(0, Purpose.FINETUNE_SPLIT, 1, len(pool)), kind="stable")
    kept = np.sort(pool[order[:n]])
    note = f"train: {n:,} of {len(pool):,} examples, drawn once for all models and seeds"
    data = data._replace(notes=(*data.notes, note))
    if data.valid_index is None:
        return data._replace(train=data.train.take(kept))
    index = np.arange(n, n + len(data.valid_index))
    return data._replace(
        train=data.train.take(np.concatenate([kept, data.valid_index])), valid_index=index
    )


def suite_names() -> list[str]:
    """The suites that `load_suite` knows, sorted."""
    return list(suite_files())


def load_suite(suite: str) -> Suite:
    """The suite of that name. Raises `UsageError` for an unknown one."""
    files = suite_files()
    if suite not in files:
        raise UsageError(
            f"no suite '{suite}'; {did_you_mean(suite, files)}",
            fix="see `genodiff finetune list`",
        )
    return _read_suite(files[suite])


def task_names(suite: str) -> list[str]:
    """The names of a suite's tasks, in the order of its published table."""
    return [task.name for task in load_suite(suite).tasks]


def find_task(suite: str, name: str) -> Task:
    """One task's settings. Raises `UsageError` for an unknown name."""
    tasks = {task.name: task for task in load_suite(suite).tasks}
    if name not in tasks:
        raise UsageError(
            f"no task '{name}' in {suite}; {did_you_mean(name, tasks)}",
            fix=f"see `genodiff finetune list {suite}`",
        )
    return tasks[name]


def load_task(
    suite: str,
    name: str,
    *,
    source: str | Path | None = None,
    split: str = "official",
    references: Mapping[str, Path] | None = None,
    offline: bool = False,
    sequences: bool = True,
) -> TaskData:
    """A task with its examples, checked against what its recipe says.

    `source` is the folder (or file) with the suite's data; None looks into the cache. `references`
    gives the user's own genome files by reference name; with `sequences=False` coordinates stay
    without sequences. Splits: `official`; `chrom-holdout` (whole chromosomes test); `dedup` (train
    loses what equals or overlaps test); for Genomic Benchmarks also `local` and `partial`, as far
    as such files are there. Raises `UsageError` for an unknown name and `DataError` for data that
    are missing, broken or not the task's.
    """
    found, task = load_suite(suite), find_task(suite, name)
    if split not in SPLITS:
        raise UsageError(f"no split '{split}'; {did_you_mean(split, SPLITS)}")
    if found.domain == "text" and split != "official":
        raise UsageError(f"{suite} has no split '{split}', which is of DNA", fix="use official")
    if source is None:
        folder = fetch_task(found.layout, found.url, suite, name, task.classes, offline=offline)
    else:
        folder = Path(source)
    if not folder.exists():
        raise DataError(f"the data of {suite} are not here", file=folder, fix="check the path")
    parts = _parts(found, task, folder, split, dict(references or {}), offline, sequences)
    if split in ("official", "chrom-holdout", "dedup"):
        _check_counts(task, parts, folder)
    if split in ("chrom-holdout", "dedup"):
        usual = (
            contig for name in task.references.values() for contig in found.references[name].holdout
        )
        held_out = frozenset(task.holdout or usual)
        parts = resplit(split, parts, task.classes, held_out)
    return TaskData(
        task,
        parts.train,
        parts.test,
        split,
        parts.notes + cut_notes(task, parts),
        parts.valid_index,
    )


def _parts(
    suite: Suite,
    task: Task,
    folder: Path,
    split: str,
    given: dict[str, Path],
    offline: bool,
    sequences: bool,
) -> Parts:
    if suite.layout == "genomic-benchmarks":
        if split == "local":
            return read_local(folder, task.name, task.classes)
        if split == "partial":
            return read_partial(folder, task.name, task.classes)
        of_class = {name: (ref, suite.references[ref]) for name, ref in task.references.items()}
        return read_official(
            folder, task.name, task.classes, Genomes(of_class, given, offline, sequences)
        )
    if split in ("local", "partial"):
        raise UsageError(
            f"{suite.suite} has no split '{split}'", fix="use official, chrom-holdout or dedup"
        )
    if suite.layout == "glue":
        return read_glue(folder, task.name)
    if suite.layout == "table" and suite.train is not None and suite.test is not None:
        return read_selection(
            folder, suite.train.of(task.name), suite.test.of(task.name), task.kind, task.classes
        )
    return read_parts(folder, task.name, task.kind, task.classes)


def _check_counts(task: Task, parts: Parts, folder: Path) -> None:
    """The published counts and lengths are the check that these are the official data."""
    train = parts.train
    if parts.valid_index is not None:
        found = {"dev": train.take(parts.valid_index), "test": parts.test}
        found["train"] = train.take(np.setdiff1d(np.arange(train.n), parts.valid_index))
    else:
        found = {"train": train, "test": parts.test}
    for part, examples in found.items():
        counts = (
            tuple(class_counts(examples.labels, task.classes).values())
            if task.classes
            else (examples.n,)
        )
        if part in task.counts and counts != task.counts[part]:
            shown = " / ".join(f"{n:,}" for n in counts)
            wanted = " / ".join(f"{n:,}" for n in task.counts[part])
            what = (
                f"{task.name}: {part} has {shown} examples per class "
                f"({', '.join(task.classes)}), the published data {wanted}"
            )
            raise DataError(
                what,
                file=folder,
                fix="give the complete official data, or use `finetune table` for your own",
            )
        lengths = examples.lengths
        if task.lengths is not None and (
            lengths.min() < task.lengths[0] or lengths.max() > task.lengths[1]
        ):
            what = (
                f"{task.name}: {part} has lengths {lengths.min():,} to {lengths.max():,}, "
                f"the published data"
            )
            raise DataError(
                f"{what} {task.lengths[0]:,} to {task.lengths[1]:,}",
                file=folder,
                fix="give the official data",
            )


def cut_notes(task: Task, parts: Parts) -> tuple[str, ...]:
    """A note for each part with sequences that are cut; how many tokens a text has depends on the
    network.
    """
    notes: list[str] = []
    for part, examples in (
        (("train", parts.train), ("test", parts.test)) if task.domain == "dna" else ()
    ):
        long = int((examples.lengths > task.max_length).sum())
        if long:
            share = f"{long:,} of {examples.n:,} {part} sequences ({long / examples.n:.1%})"
            notes.append(
                f"{share} are longer than {task.max_length:,} and are cut to their first "
                f"{task.max_length:,} bases"
            )
    return tuple(notes)


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
                task["references"] = {
                    name: task["references"]
                    for name in task.get("classes", Task.model_fields["classes"].default)
                }
    return Suite.parse(values, file=path)
