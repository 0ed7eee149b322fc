"""Which data a sweep reads: tasks of a suite, or a user's own files.

A request holds plain values only, so that a worker process can open the same data.
"""

import json
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from genodiff.data.kmers import K
from genodiff.domain import DomainName
from genodiff.errors import DataError
from genodiff.io.file_kinds import canonical_json
from genodiff.io.input_file import is_planning
from genodiff.settings import Settings
from genodiff.tasks.examples import count_classes
from genodiff.tasks.labelled_file import TableColumns
from genodiff.tasks.labels import Kind
from genodiff.tasks.own_data import load_own_data
from genodiff.tasks.split_names import Level, name_split
from genodiff.tasks.suite import Metric, choose_tasks, load_suite
from genodiff.tasks.task import TaskData, load_task, subsample_train


class TableFiles(Settings):
    """A user's own task.

    `train` may be a folder or zip of class folders, as Genomic Benchmarks have; then there is no
    `test`.
    """

    name: str
    train: str
    test: str | None = None
    valid: str | None = None
    sequence: str | None = None
    labels: tuple[str, ...] = ()
    kind: Kind | None = None
    metric: Metric | None = None
    max_length: int | None = None
    test_share: float | None = None
    drop_missing: bool = False


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
            t = self.table
            layout = TableColumns(t.sequence, t.labels, drop_missing=t.drop_missing)
            split = "official" if self.split == "own" else self.split
            rest = t.model_dump(exclude={"sequence", "labels", "drop_missing"})
            return load_own_data(**rest, layout=layout, split=split, similarity=self.similarity)
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
    """`Request.load`, the last one kept: units of one task follow one another."""
    return DataRequest.model_validate(json.loads(request_json)).load(name)
