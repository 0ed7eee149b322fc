"""Which data a sweep reads: tasks of a suite, or a user's own class folders, their zip, or tables.

A request holds plain values only, so that a worker process can open the same data.
"""

import json
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from genodiff.data.kmers import K
from genodiff.domain import DomainName
from genodiff.errors import DataError, UsageError, printable
from genodiff.io.file_kinds import canonical_json
from genodiff.io.input_file import is_planning, open_input, was_cut
from genodiff.settings import Settings
from genodiff.tasks.class_folders import is_class_folders, read_class_folders, refuse_archive
from genodiff.tasks.examples import Parts, concatenate, count_classes
from genodiff.tasks.labelled_file import TableColumns, read_examples
from genodiff.tasks.labels import SEPARATOR, Kind, list_few
from genodiff.tasks.layouts.parts import find_parts
from genodiff.tasks.resplit import resplit
from genodiff.tasks.split_names import (
    RESPLITS,
    THRESHOLD,
    Level,
    check_similarity,
    choose_split,
    name_split,
    refuse_single_table,
)
from genodiff.tasks.suite import Metric, Task, choose_tasks, load_suite
from genodiff.tasks.task import TaskData, join_parts, load_task, subsample_train


class TableFiles(Settings):
    """A user's own files.

    `train` may be a folder or zip that holds the other parts as well: class folders as Genomic
    Benchmarks have, or tables. `test_share` (between 0 and 1) of one table tests, in clusters of
    sequences that are alike, always the same. Its labels say what kind of task it is and give the
    classes their order, unless `kind` is given; without `max_length` nothing is cut.
    """

    train: str
    test: str | None = None
    valid: str | None = None
    name: str = ""
    sequence: str | None = None
    labels: tuple[str, ...] = ()
    kind: Kind | None = None
    metric: Metric | None = None
    max_length: int | None = None
    test_share: float | None = None
    drop_missing: bool = False


SUITE = "table"
METRICS: dict[Kind, tuple[Metric, ...]] = {
    "binary": ("accuracy", "f1", "mcc", "auroc"),
    "multiclass": ("accuracy", "f1_macro", "mcc", "auroc"),
    "multilabel": ("f1_macro", "accuracy", "auroc", "auprc"),
    "regression": ("pearson", "spearman", "r2", "mse"),
}


def load_own_data(
    files: TableFiles, *, split: str = "official", similarity: float | None = None
) -> TaskData:
    """The task that a user's files make.

    `split` is `official` (as given) or one of `RESPLITS`; `similarity` is homology's threshold.
    Raises `DataError` and `UsageError`.
    """
    path = Path(files.train)
    split = choose_split(split, files.test_share)
    check_similarity(split, similarity)
    for given in (files.train, files.test, files.valid):
        if given is not None:
            refuse_archive(given)
    refuse_single_table(path, files.test, files.valid, files.test_share)
    parts, kind, classes = _read_own(files)
    if split in RESPLITS and not was_cut():
        parts = resplit(split, parts, classes, frozenset(), similarity or THRESHOLD)
    elif split != "official":
        fix = f"use official, {', '.join(RESPLITS)}"
        raise UsageError(f"own data have no split '{split}'", fix=fix)
    longest = max(int(part.lengths.max()) for part in (parts.train, parts.test) if part.n)
    first = (files.metric,) if files.metric else ()
    task = Task(
        suite=SUITE,
        name=files.name or printable(path.name.split(".")[0] or path.resolve().name or "own"),
        kind=kind,
        classes=classes,
        metrics=tuple(dict.fromkeys((*first, *METRICS[kind]))),
        max_length=files.max_length or longest,
    )
    return join_parts(task, parts, "own" if split == "official" else name_split(split, similarity))


def _read_own(files: TableFiles) -> tuple[Parts, Kind, tuple[str, ...]]:
    path, test, valid = Path(files.train), files.test, files.valid
    drop = files.drop_missing
    layout = TableColumns(files.sequence, files.labels, own=True, drop_missing=drop)
    if test is None and not path.exists():
        with open_input(path):  # says what is wrong with it, with the nearest name
            pass
    if test is None and is_class_folders(path):
        train_part, test_part, classes = read_class_folders(path)
        kind: Kind = "binary" if len(classes) == 2 else "multiclass"
        return Parts(train_part, test_part), kind, classes
    if test is None and path.is_dir():
        found = find_parts(path)
        for part in ("train", "test"):
            if part not in found:
                what = (
                    f"has no {part} part: neither a folder '{part}' nor a table {part}.csv, "
                    f".tsv, .parquet or .fa"
                )
                fix = "give train/CLASS/*.txt and test/CLASS/*.txt, or train.csv and test.csv"
                raise DataError(what, file=path, fix=fix)
        path, *rest = found.values()
        test, *own = map(str, rest)
        valid = valid or next(iter(own), None)
    train_part, kind, classes = read_examples(path, layout, kind=files.kind)
    if kind in ("binary", "multiclass") and train_part.n > 2 * len(classes) and not was_cut():
        counts = count_classes(train_part.labels, classes)
        if alone := next((name for name, n in counts.items() if n < 2), None):
            # It cannot be learnt and validated, and is mostly a typing error in a label.
            what = f"the class '{alone}' has one example only"
            raise DataError(what, file=path, fix="correct the label, or give more examples")
    if test is None:
        n_test = max(1, round((files.test_share or 0) * train_part.n))
        rows = np.arange(train_part.n)
        note = f"one table: a share of {files.test_share:g} of it tests"
        some, others = train_part.take(rows[:n_test]), train_part.take(rows[n_test:])
        return Parts(others, some, (_tell_kind(kind, classes), note)), kind, classes
    told, notes = (not was_cut() and classes) or None, [_tell_kind(kind, classes)]
    index: NDArray[np.int64] | None = None
    test_part = read_examples(test, layout, kind=kind, classes=told)[0]
    if valid is not None:
        valid_part = read_examples(valid, layout, kind=kind, classes=told)[0]
        name = Path(valid).name
        notes.append(f"validation: {name} ({valid_part.n:,} examples) for every seed")
        index = np.arange(train_part.n, train_part.n + valid_part.n)
        train_part = concatenate(train_part, valid_part)
    return Parts(train_part, test_part, tuple(notes), index), kind, classes


def _tell_kind(kind: Kind, classes: tuple[str, ...]) -> str:
    told = f"the labels make a {kind} task"
    if classes:
        told += f": {list_few(classes)}"
    if kind == "multiclass" and any(SEPARATOR in name for name in classes):
        told += f" (--kind multilabel would read {SEPARATOR} as 'and')"
    return told


class Exclusion(Settings):
    """The rows of a task's test part that no model of a sweep is scored on."""

    level: Level
    rows: tuple[int, ...]

    def leave_out(self, data: TaskData) -> TaskData:
        """The task without them. Raises `DataError` where no example of a class is left."""
        kept = np.ones(data.test.n, np.bool_)
        kept[list(self.rows)] = False
        test = data.test.take(kept)
        classes = data.task.classes
        left = count_classes(test.labels, classes) if classes else {"": test.n}
        for name, n in left.items():
            if not n:
                what = f"task {data.task.name}: pretraining saw {self.level} of every test sequence"
                what += f" of class '{name}'" if name else ""
                raise DataError(what, fix="leave --exclude-overlap out, or give another level")
        note = (
            f"test: {len(self.rows):,} of {data.test.n:,} examples left out for all models: "
            f"{self.level} of their {K}-mers occur in pretraining data"
        )
        split = f"{data.split}, {self.level} seen left out"
        return data._replace(test=test, split=split, notes=(*data.notes, note))


class DataRequest(Settings):
    """Where tasks come from. `excluded` are what `--exclude-overlap` drops, by task."""

    suite: str
    split: str = "official"
    data: str | None = None
    references: dict[str, str] = Field(default_factory=dict)
    offline: bool = False
    table: TableFiles | None = None
    max_train: Annotated[int | None, Field(ge=10)] = None
    similarity: float | None = None
    excluded: dict[str, Exclusion] = Field(default_factory=dict)

    @property
    def domain(self) -> DomainName:
        """Domain of the sequences."""
        return "dna" if self.table is not None else load_suite(self.suite).domain

    @property
    def named_split(self) -> str:
        """The split as results name it, but for what `excluded` takes out."""
        own = self.table is not None
        split = self.split if own else load_suite(self.suite).resolve_split(self.split)
        return name_split(split, self.similarity)

    def names(self, word: str = "all") -> list[str]:
        """The tasks that a word means: one name, several with commas, or all of the suite.

        Raises `UsageError` for an unknown name.
        """
        return [self.table.name] if self.table is not None else choose_tasks(self.suite, word)

    def to_json(self) -> str:
        """The request as text, whatever bytes the names of its files have."""
        return canonical_json(self.model_dump(mode="json"))

    def load(self, name: str) -> TaskData:
        """A task with its examples, of train at most `max_train`.

        Raises `DataError` where the data are missing or wrong.
        """
        data = self._whole(name)
        if self.max_train is not None:
            data = subsample_train(data, self.max_train)
        return self.excluded[name].leave_out(data) if name in self.excluded else data

    def _whole(self, name: str) -> TaskData:
        if self.table is not None:
            split = "official" if self.split == "own" else self.split
            return load_own_data(self.table, split=split, similarity=self.similarity)
        data = load_task(
            self.suite,
            name,
            source=self.data,
            split=self.split,
            references={name: Path(path) for name, path in self.references.items()},
            offline=self.offline,
            similarity=self.similarity,
            sequences=not is_planning(),
        )
        if not (is_planning() or (data.train.sequences and data.test.sequences)):
            what = f"task {name} has coordinates but no sequences"
            raise DataError(what, fix="give the genome with --reference NAME=FASTA")
        return data


@lru_cache(maxsize=1)
def load_cached(request_json: str, name: str) -> TaskData:
    """`DataRequest.load`, the last one kept: units of one task follow one another."""
    return DataRequest.model_validate(json.loads(request_json)).load(name)
