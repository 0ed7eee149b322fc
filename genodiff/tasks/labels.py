"""Labels of a table: what kind of task they make, which classes there are, and their numbers.

The labels of the train part decide between two classes, several classes and values, unless the user
says which. The decision is always reported, since `0, 1, 2` may be classes or counts.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import DataError, UsageError
from genodiff.tasks.table import TextTable

Kind = Literal["binary", "multiclass", "multilabel", "regression"]

LABEL = ("label", "labels", "target", "class", "y")
"""Usual names of the column of labels."""

_MOST_CLASSES = 50
SEPARATOR = ";"
"""Between the labels of a row in a multi-label task of one column."""


def read_labels(
    table: TextTable, columns: tuple[str, ...], kind: Kind | None, classes: tuple[str, ...] | None
) -> tuple[NDArray[np.generic], Kind, tuple[str, ...]]:
    chosen = [table.column(name, LABEL, "label") for name in columns] or [
        table.column(None, LABEL, "label")
    ]
    for name in chosen:
        joined = any(SEPARATOR in cell for cell in table.cells[name])
        for cell, line in zip(table.cells[name], table.line, strict=True):
            if not cell.strip() and kind != "multilabel":
                raise DataError(
                    f"no label in column '{name}'",
                    file=table.file,
                    line=line,
                    fix=f"give --kind multilabel, which reads {SEPARATOR} as 'and', empty as none"
                    if joined
                    else "give it, or remove the row",
                )
    if len(chosen) > 1:
        if kind not in (None, "multilabel"):
            raise UsageError(f"{len(chosen)} label columns make a multilabel task, not {kind}")
        return _answers(table, chosen), "multilabel", tuple(chosen)
    cells = [cell.strip() for cell in table.cells[chosen[0]]]
    if kind == "multilabel":
        sets = [[part.strip() for part in cell.split(SEPARATOR) if part.strip()] for cell in cells]
        classes = classes or tuple(sorted({name for row in sets for name in row}))
        if not classes:
            raise DataError(
                f"column '{chosen[0]}' has no label at all",
                file=table.file,
                fix="write class names, separated by ;",
            )
        yes = np.zeros((len(sets), len(classes)), np.uint8)
        for i, row in enumerate(sets):
            for name in row:
                yes[i, _class(table, name, classes, table.line[i])] = 1
        return yes, "multilabel", classes
    if classes is None:
        kind, classes = infer_kind(cells, kind)
    kind = kind or ("binary" if len(classes) == 2 else "multiclass")
    if kind == "regression":
        return _values(table, cells), kind, ()
    if len(classes) < 2 or (kind == "binary") != (len(classes) == 2):
        what = (
            f"{len(classes)} different label{'s' * (len(classes) != 1)} "
            f"({', '.join(classes[:5])}) do not make a {kind} task"
        )
        raise DataError(
            what,
            file=table.file,
            fix="give two classes (binary), more (multiclass), or --kind regression",
        )
    number = {name: i for i, name in enumerate(classes)}
    labels = [
        number[c] if c in number else _class(table, c, classes, line)
        for c, line in zip(cells, table.line, strict=True)
    ]
    return np.array(labels, np.int64), kind, classes


def infer_kind(cells: list[str], kind: Kind | None = None) -> tuple[Kind, tuple[str, ...]]:
    """The kind of task that these labels make, and its classes in order.

    Labels are values where one is not a whole number or where there are many.
    """
    different = set(cells)
    numbers = {cell: value for cell in different if (value := _number(cell)) is not None}
    numeric = len(numbers) == len(different)
    if kind == "regression":
        return "regression", ()
    if (
        kind is None
        and numeric
        and (any(v != int(v) for v in numbers.values()) or len(different) > _MOST_CLASSES)
    ):
        return "regression", ()
    order = (
        sorted(different, key=lambda cell: (numbers[cell], cell)) if numeric else sorted(different)
    )
    return kind or ("binary" if len(order) == 2 else "multiclass"), tuple(order)


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _class(table: TextTable, cell: str, classes: tuple[str, ...], line: int) -> int:
    if cell in classes:
        return classes.index(cell)
    if (
        cell.isascii()
        and cell.isdigit()
        and int(cell) < len(classes)
        and not any(name.isdigit() for name in classes)
    ):
        return int(cell)
    what = (
        f"unknown label '{cell[:60]}': the classes are "
        f"{', '.join(classes[:8])}{', ...' * (len(classes) > 8)}"
    )
    raise DataError(
        what, file=table.file, line=line, fix="correct the label, or give train rows of that class"
    )


def _values(table: TextTable, cells: list[str]) -> NDArray[np.float64]:
    for cell, line in zip(cells, table.line, strict=True):
        if _number(cell) is None:
            raise DataError(
                f"the label '{cell[:60]}' is not a finite number",
                file=table.file,
                line=line,
                fix="correct it",
            )
    return np.array([float(cell) for cell in cells])


def _answers(table: TextTable, columns: list[str]) -> NDArray[np.uint8]:
    yes = np.zeros((len(table.line), len(columns)), np.uint8)
    meaning = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
    for j, name in enumerate(columns):
        for i, cell in enumerate(table.cells[name]):
            answer = meaning.get(cell.strip().lower())
            if answer is None:
                what = f"'{cell[:60]}' in column '{name}' is neither 0 nor 1"
                raise DataError(
                    what, file=table.file, line=table.line[i], fix="multi-label columns hold 0 or 1"
                )
            yes[i, j] = answer
    return yes
