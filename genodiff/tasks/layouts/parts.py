"""The plain layouts: one file per part of a task, or one table for all tasks."""

from pathlib import Path

import numpy as np

from genodiff.errors import DataError, UsageError
from genodiff.tasks.examples import Parts, concatenate
from genodiff.tasks.labelled_file import TableColumns, read_examples
from genodiff.tasks.suite import LAYOUTS, TaskFiles, find_suite_file

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


def find_parts(folder: Path) -> dict[str, Path]:
    """The files of train, test and validation parts in a folder, those that exist."""
    return {p: file for p in ("train", "test", *VALID) if (file := find_part(folder, p))}


@LAYOUTS.register("parts")
def read_parts(files: TaskFiles) -> Parts:
    """`train`, `test` and, if it exists, `dev` of a task.

    They are in a folder named after the task, or in the given one. The dev part follows the train
    part, and `valid_index` holds its rows. Raises `DataError` where a part is missing.
    """
    task, home = files.task, files.home
    found = find_parts(home)
    missing = [part for part in ("train", "test") if part not in found]
    if missing:
        what = f"{task.name} has no {' and no '.join(missing)} part here"
        what += f", only {' and '.join(found)}" if found else ""
        fix = "give the folder with train.csv and test.csv (or .tsv, .parquet, .fna; plain or .gz)"
        raise DataError(what, file=home, fix=fix)
    paths = list(found.values())[:3]  # train, test, and the first dev part
    train, test, *rest = (
        read_examples(path, kind=task.kind, classes=task.classes)[0] for path in paths
    )
    if not rest:
        return Parts(train, test)
    valid = rest[0]
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
        where = ((column, v.replace("{task}", task.name)) for column, v in rows.where.items())
        columns = TableColumns(where=tuple(where))
        found.append(read_examples(path, columns, kind=task.kind, classes=task.classes)[0])
    return Parts(found[0], found[1])
