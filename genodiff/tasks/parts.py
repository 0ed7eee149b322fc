"""The parts of a task as readers give them, and the plain layout: one file per part, or one table
for all tasks.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import DataError
from genodiff.tasks.examples import Examples, concatenate
from genodiff.tasks.labelled_file import TableColumns, read_examples
from genodiff.tasks.labels import Kind

ENDINGS = (".csv", ".tsv", ".parquet", ".fna", ".fa", ".fasta")
VALID = ("dev", "valid", "val")


class Parts(NamedTuple):
    """Both parts of a task, what was done to them, and the rows of train that the benchmark itself
    uses to validate.
    """

    train: Examples
    test: Examples
    notes: tuple[str, ...] = ()
    valid_index: NDArray[np.int64] | None = None


class Selection(NamedTuple):
    """A file of a suite and the rows of it (columns with these values) that make one part of a
    task.
    """

    file: str
    where: tuple[tuple[str, str], ...] = ()


def find_part(folder: Path, part: str) -> Path | None:
    """`part` as a table or FASTA file in `folder`, or None. Raises `DataError` where there are two."""
    found = [
        p
        for ending in ENDINGS
        for p in (folder / f"{part}{ending}", folder / f"{part}{ending}.gz")
        if p.is_file()
    ]
    if len(found) > 1:
        raise DataError(
            f"holds {found[0].name} and {found[1].name}: which is the {part} part?",
            file=folder,
            fix="remove one",
        )
    return found[0] if found else None


def read_parts(folder: Path, name: str, kind: Kind, classes: tuple[str, ...]) -> Parts:
    """`train`, `test` and, where it is there, `dev` of a task, from `folder/name` or from `folder`
    itself.

    The dev part is put behind the train part, and `valid_index` says so. Raises `DataError` where a
    part is missing.
    """
    home = folder / name if (folder / name).is_dir() else folder
    files = {part: find_part(home, part) for part in ("train", "test", *VALID)}
    missing = [part for part in ("train", "test") if files[part] is None]
    if missing:
        present = [part for part, file in files.items() if file is not None]
        what = f"{name} has no {' and no '.join(missing)} part here" + (
            f", only {' and '.join(present)}" if present else ""
        )
        raise DataError(
            what,
            file=home,
            fix="give the folder with train.csv and test.csv (or .tsv, .parquet, .fna; "
            "plain or .gz)",
        )
    train, test = (_read(files[part], kind, classes) for part in ("train", "test"))
    valid = next(
        (_read(files[part], kind, classes) for part in VALID if files[part] is not None), None
    )
    if valid is None:
        return Parts(train, test)
    note = f"validation: the published dev part ({valid.n:,} examples) for every seed"
    return Parts(concatenate(train, valid), test, (note,), np.arange(train.n, train.n + valid.n))


def read_selection(
    folder: Path, train: Selection, test: Selection, kind: Kind, classes: tuple[str, ...]
) -> Parts:
    """The parts of a task whose suite is one table, or one per part."""
    found = []
    for chosen in (train, test):
        path = folder if folder.is_file() and folder.name == chosen.file else folder / chosen.file
        found.append(
            read_examples(path, TableColumns(where=chosen.where), kind=kind, classes=classes)[0]
        )
    return Parts(found[0], found[1])


def _read(path: Path | None, kind: Kind, classes: tuple[str, ...]) -> Examples:
    assert path is not None
    return read_examples(path, kind=kind, classes=classes)[0]
