"""Labels of a table: what kind of task they make, which classes there are, and their numbers.

The labels of the train part decide between two classes, several classes and values, unless the user
says which. The decision is always reported, since `0, 1, 2` may be classes or counts.
"""

import logging
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import DataError, UsageError, format_count
from genodiff.io.input_file import was_cut
from genodiff.io.text_lines import find_alike, find_spoilt_name, is_missing, read_number
from genodiff.tasks.table import TextTable

_FEW = 0.1  # of all rows: so many words leave a column one of numbers
_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?")
_POINT = re.compile(r"[+-]?[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+")
_NEARLY = re.compile(
    r"[<>~≤≥]?\s*[+-]?[0-9][0-9.,'’ ]*(?:[eE][+-]?[0-9]+)?\s*%?|[+-]?inf(?:inity)?|none|missing"
    r"|[-–—.?]",
    re.IGNORECASE,
)
_PERCENT = re.compile(r"[+-]?[0-9]*[.,]?[0-9]+\s*%")
_INTEGRAL = re.compile(r"([+-]?[0-9]+)\.0*")


class NumberColumn(NamedTuple):
    """The cells of a column, and the value of each; NaN where it is no finite number."""

    cells: list[str]
    values: np.ndarray[tuple[int], np.dtype[np.float64]]
    comma: bool
    """Whether the numbers have decimal commas."""

    @property
    def bad(self) -> list[int]:
        """The rows whose cell is no finite number."""
        return np.flatnonzero(np.isnan(self.values)).tolist()

    def holds_numbers(self) -> bool:
        """Whether this is a column of numbers, some of which may be missing or misspelt.

        One row never decides: beside numbers, NA, inf, -, <0.1 and the like are numbers that went
        wrong, and so are percentages alone. So are other words in a tenth of the rows, or where
        half of the rows are numbers and some of these have fractions.
        """
        if self.cells and all(map(_PERCENT.fullmatch, self.cells)):
            return True
        good = self.values[~np.isnan(self.values)]
        words = [self.cells[i] for i in self.bad]
        words = [cell for cell in words if not is_missing(cell) and not _NEARLY.fullmatch(cell)]
        if not len(good) or not words:
            return bool(len(good))
        fractions = bool((good != np.floor(good)).any()) and 2 * len(good) >= len(self.cells)
        return fractions or len(words) <= _FEW * len(self.cells)


def read_numbers(cells: list[str], separator: str, file: str, lines: list[int]) -> NumberColumn:
    """The numbers of a column of a table with this separator.

    A comma is the decimal sign where more numbers have one than have a point. Raises `DataError`
    where it might as well part thousands: `1,004` and the like alone, but not beside semicolons,
    which tables have because commas are decimal.
    """
    with_comma = [i for i, cell in enumerate(cells) if _COMMA.fullmatch(cell)]
    n_points = sum(_POINT.fullmatch(cell) is not None for cell in cells)
    comma = len(with_comma) > n_points
    if comma and separator != ";" and all(_THOUSANDS.fullmatch(cells[i]) for i in with_comma):
        first = with_comma[0]
        what = f"'{cells[first]}' may have a decimal comma or a thousands separator"
        fix = "write numbers with a decimal point, without thousands separators"
        raise DataError(what, file=file, line=lines[first], fix=fix)
    return NumberColumn(cells, np.array([_read(cell, comma) for cell in cells]), comma)


def name_number(cell: str) -> str:
    """A whole number without decimals, as it names a class: `1.0` is `1`; others as they are."""
    found = _INTEGRAL.fullmatch(cell)
    return found[1] if found else cell


def _read(cell: str, comma: bool) -> float:
    if comma and "." in cell:
        return np.nan
    value = read_number(cell.replace(",", ".") if comma else cell)
    return np.nan if value is None else value


log = logging.getLogger("genodiff")

Kind = Literal["binary", "multiclass", "multilabel", "regression"]

LABEL = ("label", "labels", "target", "class", "y")
"""Usual names of the column of labels."""

_MOST_CLASSES = 50
SEPARATOR = ";"
"""Between the labels of a row in a multi-label task of one column."""
MARKS = ("", "-", ".", "?")
"""Cells that stand for no value, besides the words for it (`genodiff.io.text_lines.is_missing`)."""


def list_few(names: Sequence[str], most: int = 8) -> str:
    """The first names with commas between them, and dots for more."""
    return ", ".join(names[:most]) + ", ..." * (len(names) > most)


def choose_label_columns(table: TextTable, columns: tuple[str, ...]) -> list[str]:
    """The columns that are named, or the one with a usual name. Raises as `TextTable.column`."""
    return [table.column(name, LABEL, "label") for name in columns or (None,)]


def find_unlabelled(table: TextTable, chosen: list[str], kind: Kind | None) -> set[int]:
    """The rows without a label: empty, NA and the like; among numbers also inf, - and such marks.

    A multi-label row may be empty.
    """
    empty = set() if kind == "multilabel" else {""}
    columns = [[cell.strip() for cell in table.cells[name]] for name in chosen]
    rows = {
        i for cells in columns for i, cell in enumerate(cells)
        if cell in empty or (cell and is_missing(cell))
    }  # fmt: skip
    if len(chosen) == 1 and kind in (None, "regression"):
        numbers = read_numbers(columns[0], table.separator, table.file, table.line)
        if numbers.holds_numbers():
            words = (*MARKS, "inf", "+inf", "-inf", "none")
            rows |= {i for i in numbers.bad if columns[0][i].lower() in words}
    return rows


def read_labels(
    table: TextTable,
    chosen: list[str],
    kind: Kind | None,
    classes: tuple[str, ...] | None,
    *,
    own: bool = False,
) -> tuple[NDArray[np.generic], Kind, tuple[str, ...]]:
    """The labels in the columns `chosen`, their kind and the names of the classes.

    `own` is as in `TableColumns`. Raises `DataError` with the line, `UsageError`.
    """
    _refuse_missing(table, chosen, kind, own)
    if len(chosen) > 1:
        if kind not in (None, "multilabel"):
            raise UsageError(f"{len(chosen)} label columns make a multilabel task, not {kind}")
        return _answers(table, chosen), "multilabel", tuple(chosen)
    cells = [cell.strip() for cell in table.cells[chosen[0]]]
    if kind == "multilabel":
        return _several(table, chosen[0], cells, classes, own)
    fixed = classes
    if classes is None:
        cells, kind, classes = _infer(table, cells, kind, own)
    kind = kind or ("binary" if len(classes) == 2 else "multiclass")
    if kind == "regression":
        return _values(table, cells, own), kind, ()
    if was_cut():  # of a plan, whose other classes may stand further down
        classes = (*classes, "(not read)") if len(classes) < 2 else classes
        kind = "binary" if len(classes) == 2 else "multiclass"
    if len(classes) < 2 or (kind == "binary") != (len(classes) == 2):
        different = format_count(len(classes), "different label")
        what = f"{different} ({', '.join(classes[:5])}) do not make a {kind} task"
        fix = "give two classes (binary), more (multiclass), or --kind regression"
        raise DataError(what, file=table.file, fix=fix)
    if fixed is not None and own:
        cells = [cell if cell in classes else name_number(cell) for cell in cells]
        _refuse_strangers(table, cells, classes)
    number = {name: i for i, name in enumerate(classes)}
    labels = [
        number[c] if c in number else _class(table, c, classes, line, own)
        for c, line in zip(cells, table.line, strict=True)
    ]
    return np.array(labels, np.int64), kind, classes


def _refuse_missing(table: TextTable, chosen: list[str], kind: Kind | None, own: bool) -> None:
    for name in chosen:
        joined = any(SEPARATOR in cell for cell in table.cells[name])
        for cell, line in zip(table.cells[name], table.line, strict=True):
            cell = cell.strip()
            if not is_missing(cell) or (not cell and kind == "multilabel"):
                continue
            what, fix = f"no label in column '{name}'", f"give it, or {_remove(own)}"
            if cell:
                what = f"the label '{cell}' says that a value is missing"
                fix += "; rename it if it is a class"
            elif joined:
                fix = f"give --kind multilabel, which reads {SEPARATOR} as 'and', empty as none"
            raise DataError(what, file=table.file, line=line, fix=fix)


def _remove(own: bool) -> str:
    return "remove the row" + " (--drop-missing leaves out all such rows)" * own


def _several(
    table: TextTable, column: str, cells: list[str], classes: tuple[str, ...] | None, own: bool
) -> tuple[NDArray[np.uint8], Kind, tuple[str, ...]]:
    sets = [[part.strip() for part in cell.split(SEPARATOR) if part.strip()] for cell in cells]
    if classes is None:
        classes = tuple(sorted({name for row in sets for name in row}))
        _check_class_names(table, [name for row in sets for name in row], None)
    if not classes:
        what = f"column '{column}' has no label at all"
        raise DataError(what, file=table.file, fix="write class names, separated by ;")
    yes = np.zeros((len(sets), len(classes)), np.uint8)
    for i, row in enumerate(sets):
        for name in row:
            yes[i, _class(table, name, classes, table.line[i], own)] = 1
    return yes, "multilabel", classes


def _infer(
    table: TextTable, cells: list[str], kind: Kind | None, own: bool
) -> tuple[list[str], Kind, tuple[str, ...]]:
    """The cells as classes are named, the kind of task that they make, and its classes in order.

    Labels are values where one is not a whole number or where there are many. Raises `DataError`
    where numbers have other words between them, and where two names differ in nothing but capitals.
    """
    if kind == "regression":
        return cells, kind, ()
    numbers = read_numbers(cells, table.separator, table.file, table.line)
    numeric = numbers.holds_numbers()
    if kind is None and numeric:
        _refuse_words(table, numbers, own)
        values = numbers.values
        if (values != np.floor(values)).any() or len(np.unique(values)) > _MOST_CLASSES:
            return cells, "regression", ()
    if numeric and not numbers.bad:
        cells = [name_number(cell) for cell in cells]
        value = dict(zip(cells, numbers.values.tolist(), strict=True))
        order = sorted(value, key=lambda cell: (value[cell], cell))
        for one, other in pairwise(order):
            if value[one] == value[other]:
                what = f"the labels '{one}' and '{other}' are the same number"
                fix = "write it in one way"
                raise DataError(what, file=table.file, line=table.line[cells.index(other)], fix=fix)
    else:
        order = sorted(set(cells))
        _check_class_names(table, cells, table.line)
    return cells, kind or ("binary" if len(order) == 2 else "multiclass"), tuple(order)


def _refuse_words(table: TextTable, numbers: NumberColumn, own: bool) -> None:
    """Raises `DataError` for the first cell among numbers that is none."""
    if not numbers.bad:
        return
    first = numbers.bad[0]
    cell, n = numbers.cells[first], len(numbers.cells) - len(numbers.bad)
    what = (
        f"the label '{cell[:60]}' is not a finite number, and {n:,} of {len(numbers.cells):,} "
        f"labels are numbers"
    )
    fix = f"correct it, {_remove(own)}, or give --kind multiclass if it is a class"
    if "," in cell and not numbers.comma:
        fix = "write it with a decimal point, as the others are"
    elif cell.endswith("%"):
        fix = "write numbers without %, or give --kind multiclass if they are classes"
    elif "." in cell and numbers.comma:
        fix = "write it with a decimal comma, as the others are, without thousands separators"
    raise DataError(what, file=table.file, line=table.line[first], fix=fix)


def _check_class_names(table: TextTable, names: list[str], lines: list[int] | None) -> None:
    """Raises `DataError` for a spoilt name of a class, and for two that capitals tell apart."""
    for name in dict.fromkeys(names):
        line = lines[names.index(name)] if lines is not None else None
        if spoilt := find_spoilt_name(name):
            what = f"the label '{name[:60]}' {spoilt[0]}"
            raise DataError(what, file=table.file, line=line, fix=spoilt[1])
    if alike := find_alike(names):
        line = lines[names.index(alike[1])] if lines is not None else None
        what = f"the labels '{alike[0][:60]}' and '{alike[1][:60]}' differ in capitals only"
        raise DataError(what, file=table.file, line=line, fix="write one class in one way")


def _refuse_strangers(table: TextTable, cells: list[str], classes: tuple[str, ...]) -> None:
    """Raises `DataError` where no label of a part is one of the train part's classes."""
    strange = sorted(set(cells) - set(classes))
    if not strange or len(strange) < len(set(cells)):
        return
    found = f"labels {list_few(strange, 5)} are" if len(strange) > 1 else f"label {strange[0]} is"
    what = f"the {found} none of the train part's: {list_few(classes)}"
    fix = "write the same labels in all parts"
    numbers = read_numbers(cells, table.separator, table.file, table.line)
    if {one.casefold() for one in strange} <= {one.casefold() for one in classes}:
        fix += ": these differ in capitals"
    elif not numbers.bad and (numbers.values != np.floor(numbers.values)).any():
        fix = "give --kind regression if labels are values, or the train part's labels"
    raise DataError(what, file=table.file, line=table.line[0], fix=fix)


def _class(table: TextTable, cell: str, classes: tuple[str, ...], line: int, own: bool) -> int:
    if cell in classes:
        return classes.index(cell)
    is_number = cell.isascii() and cell.isdigit() and not any(name.isdigit() for name in classes)
    if not own and is_number and int(cell) < len(classes):
        return int(cell)
    what = f"unknown label '{cell[:60]}': the classes are {list_few(classes)}"
    fix = "correct the label, or give train rows of that class"
    raise DataError(what, file=table.file, line=line, fix=fix)


def _values(table: TextTable, cells: list[str], own: bool) -> NDArray[np.float64]:
    numbers = read_numbers(cells, table.separator, table.file, table.line)
    if numbers.bad:
        first = numbers.bad[0]
        what = f"the label '{cells[first][:60]}' is not a finite number"
        fix = f"correct it, or {_remove(own)}"
        if len(numbers.bad) == len(cells):
            what += ", nor is any other label here"
            fix = "give numbers, as --kind says or train has"
        raise DataError(what, file=table.file, line=table.line[first], fix=fix)
    if numbers.comma:
        log.info("%s: the labels are read with decimal commas", table.file)
    return numbers.values


def _answers(table: TextTable, columns: list[str]) -> NDArray[np.uint8]:
    yes = np.zeros((len(table.line), len(columns)), np.uint8)
    meaning = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
    for j, name in enumerate(columns):
        for i, cell in enumerate(table.cells[name]):
            answer = meaning.get(cell.strip().lower())
            if answer is None:
                what = f"'{cell[:60]}' in column '{name}' is neither 0 nor 1"
                fix = "multi-label columns hold 0 or 1"
                raise DataError(what, file=table.file, line=table.line[i], fix=fix)
            yes[i, j] = answer
    return yes
