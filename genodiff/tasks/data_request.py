"""Which data a sweep reads: tasks of a suite, or a user's own files.

A request holds plain values only, so that a worker process can open the same data.
"""

from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from genodiff.domain import DomainName
from genodiff.errors import DataError
from genodiff.settings import Settings
from genodiff.tasks.labelled_file import TableColumns
from genodiff.tasks.labels import Kind
from genodiff.tasks.own_data import load_own_data
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


class DataRequest(Settings):
    """Where tasks come from."""

    suite: str
    split: str = "official"
    data: str | None = None
    references: dict[str, str] = Field(default_factory=dict)
    offline: bool = False
    table: TableFiles | None = None
    max_train: Annotated[int | None, Field(ge=10)] = None

    @property
    def domain(self) -> DomainName:
        """What the sequences are."""
        return "dna" if self.table is not None else load_suite(self.suite).domain

    def names(self, word: str = "all") -> list[str]:
        """The tasks that a word means: one name, several with commas, or all of the suite.

        Raises `UsageError` for an unknown name.
        """
        return [self.table.name] if self.table is not None else choose_tasks(self.suite, word)

    def load(self, name: str) -> TaskData:
        """A task with its examples, of train at most `max_train`.

        Raises `DataError` where the data are missing or wrong.
        """
        data = self._whole(name)
        return data if self.max_train is None else subsample_train(data, self.max_train)

    def _whole(self, name: str) -> TaskData:
        if self.table is not None:
            t = self.table
            layout = TableColumns(t.sequence, t.labels)
            split = "official" if self.split == "own" else self.split
            return load_own_data(
                t.train,
                t.test,
                t.valid,
                layout=layout,
                kind=t.kind,
                metric=t.metric,
                max_length=t.max_length,
                name=t.name,
                split=split,
            )
        references = {name: Path(path) for name, path in self.references.items()}
        data = load_task(
            self.suite,
            name,
            source=self.data,
            split=self.split,
            references=references,
            offline=self.offline,
        )
        if not data.train.sequences or not data.test.sequences:
            raise DataError(
                f"task {name} has coordinates but no sequences",
                fix="give the genome with --reference NAME=FASTA",
            )
        return data


@lru_cache(maxsize=1)
def load_cached(request_json: str, name: str) -> TaskData:
    """`Request.load`, the last one kept: units of one task follow one another."""
    return DataRequest.model_validate_json(request_json).load(name)
