"""Which data a sweep reads: tasks of a suite, or a user's own files. Plain values, so that a worker process can open them too."""

from functools import lru_cache
from pathlib import Path

import numpy as np
from pydantic import Field

from genodiff.errors import DataError, UsageError
from genodiff.finetune.examples import concatenate
from genodiff.finetune.folder import read_folder
from genodiff.finetune.table import Kind, Layout, read_table
from genodiff.finetune.task import Metric, Task, TaskData, load_task, task_names
from genodiff.settings import Settings, did_you_mean

OWN = "table"
_METRIC: dict[Kind, tuple[Metric, ...]] = {
    "binary": ("accuracy", "f1", "mcc", "auroc"),
    "multiclass": ("accuracy", "f1_macro", "mcc", "auroc"),
    "multilabel": ("f1_macro", "accuracy", "auroc", "auprc"),
    "regression": ("pearson", "spearman", "r2", "mse"),
}


class Table(Settings):
    """A user's own task. `train` may be a folder or zip of class folders, as Genomic Benchmarks are laid out; then no `test`."""

    name: str
    train: str
    test: str | None = None
    valid: str | None = None
    sequence: str | None = None
    labels: tuple[str, ...] = ()
    kind: Kind | None = None
    metric: Metric | None = None
    max_length: int | None = None


class Request(Settings):
    """Where tasks come from."""

    suite: str
    split: str = "official"
    data: str | None = None
    references: dict[str, str] = Field(default_factory=dict)
    offline: bool = False
    table: Table | None = None

    def names(self, word: str = "all") -> list[str]:
        """The tasks that a word means: one name, several with commas, or all of the suite. Raises `UsageError`."""
        if self.table is not None:
            return [self.table.name]
        known = task_names(self.suite)
        if word == "all":
            return known
        chosen = [name.strip() for name in word.split(",") if name.strip()]
        for name in chosen:
            if name not in known:
                raise UsageError(f"no task '{name}' in {self.suite}; {did_you_mean(name, known)}")
        if not chosen:
            raise UsageError("--task is empty", fix=f"give one of {', '.join(known)}, or all")
        return chosen

    def load(self, name: str) -> TaskData:
        """A task with its examples. Raises `DataError` where they are missing or wrong."""
        if self.table is not None:
            return _own(self.table)
        references = {name: Path(path) for name, path in self.references.items()}
        data = load_task(self.suite, name, source=self.data, split=self.split, references=references, offline=self.offline)
        if not data.train.sequences or not data.test.sequences:
            raise DataError(f"task {name} has coordinates but no sequences", fix="give the genome with --reference NAME=FASTA")
        return data


@lru_cache(maxsize=1)
def loaded(request_json: str, name: str) -> TaskData:
    """`Request.load`, the last one kept: units of one task follow one another."""
    return Request.model_validate_json(request_json).load(name)


def _own(table: Table) -> TaskData:
    path, notes = Path(table.train), []
    if table.test is None:
        if not (path.is_dir() or path.suffix == ".zip"):
            raise UsageError("no test part", fix="give --test FILE too, or a folder with train/ and test/")
        train, test, classes = read_folder(path)
        kind: Kind = "binary" if len(classes) == 2 else "multiclass"
    else:
        layout = Layout(table.sequence, table.labels)
        train, kind, classes = read_table(path, layout, kind=table.kind)
        test, _, _ = read_table(table.test, layout, kind=kind, classes=classes)
    valid_index = None
    if table.valid is not None:
        valid, _, _ = read_table(table.valid, Layout(table.sequence, table.labels), kind=kind, classes=classes)
        valid_index = np.arange(train.n, train.n + valid.n)
        notes.append(f"validation: {Path(table.valid).name} ({valid.n:,} examples) for every seed")
        train = concatenate(train, valid)
    metrics = tuple(dict.fromkeys(([table.metric] if table.metric else []) + list(_METRIC[kind])))
    longest = int(max(train.lengths.max(), test.lengths.max()))
    task = Task(suite=OWN, name=table.name, kind=kind, classes=classes, metrics=metrics, max_length=table.max_length or longest)
    return TaskData(task, train, test, "own", tuple(notes), valid_index)
