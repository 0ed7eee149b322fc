"""The plain layouts: one file per part of a task, or one table for all tasks."""

from pathlib import Path

import numpy as np

from genodiff.errors import DataError, UsageError
from genodiff.tasks.examples import Examples, Parts, concatenate
from genodiff.tasks.labelled_file import TableColumns, read_examples
from genodiff.tasks.suite import LAYOUTS, Task, TaskFiles, find_suite_file

ENDINGS = (".csv", ".tsv", ".parquet", ".fna", ".fa", ".fasta")
VALID = ("dev", "valid", "val")


def find_part(folder: Path, part: str, endings: tuple[str, ...] = ENDINGS) -> Path | None:
    """`part` as a table or FASTA file, or None. Raises `DataError` where there are two."""
    found = [
        p
        for ending in endings
        for p in (folder / f"{part}{ending}", folder / f"{part}{ending}.gz")
        if p.is_file()
    ]
    if len(found) > 1:
        what = f"holds {found[0].name} and {found[1].name}: which is the {part} part?"
        raise DataError(what, file=folder, fix="remove one")
    return found[0] if found else None


@LAYOUTS.register("parts")
def read_parts(files: TaskFiles) -> Parts:
    """`train`, `test` and, if it exists, `dev` of a task.

    They are in a folder named after the task, or in the given one. The dev part follows the train
    part, and `valid_index` holds its rows. Raises `DataError` where a part is missing.
    """
    task, folder = files.task, files.folder
    home = folder / task.name if (folder / task.name).is_dir() else folder
    found = {part: find_part(home, part) for part in ("train", "test", *VALID)}
    missing = [part for part in ("train", "test") if found[part] is None]
    if missing:
        present = [part for part, file in found.items() if file is not None]
        what = f"{task.name} has no {' and no '.join(missing)} part here" + (
            f", only {' and '.join(present)}" if present else ""
        )
        fix = "give the folder with train.csv and test.csv (or .tsv, .parquet, .fna; plain or .gz)"
        raise DataError(what, file=home, fix=fix)
    train, test = (_read(found[part], task) for part in ("train", "test"))
    valid = next((_read(found[part], task) for part in VALID if found[part] is not None), None)
    if valid is None:
        return Parts(train, test)
    note = f"validation: the published dev part ({valid.n:,} examples) for every seed"
    return Parts(concatenate(train, valid), test, (note,), np.arange(train.n, train.n + valid.n))


@LAYOUTS.register("table")
def read_selection(files: TaskFiles) -> Parts:
    """The parts of a task whose suite is one table, or one table per part."""
    suite, task, folder = files.suite, files.task, files.folder
    if suite.train is None or suite.test is None:
        raise UsageError(f"the suite {suite.suite} does not say which rows train and which test")
    found = []
    for rows in (suite.train, suite.test):
        path = find_suite_file(folder, rows.file)
        columns = TableColumns(where=rows.where_task(task.name))
        found.append(read_examples(path, columns, kind=task.kind, classes=task.classes)[0])
    return Parts(found[0], found[1])


def _read(path: Path | None, task: Task) -> Examples:
    assert path is not None
    return read_examples(path, kind=task.kind, classes=task.classes)[0]
