"""A column of numbers as programs write them, with decimal points or commas, and whether a column
that also holds something else is one.
"""

import re
from typing import NamedTuple

import numpy as np

from genodiff.errors import DataError
from genodiff.io.text_lines import is_missing, read_number

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
