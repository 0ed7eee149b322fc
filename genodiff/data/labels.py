"""Labels of windows, for conditional training: a class for each contig or interval.

A file is either a BED file, CONTIG START END LABEL, or a table, CONTIG LABEL (species as label),
separated by tabs, or by commas, semicolons or blanks alone. A first line of column names is passed
over. The label of a window is that of the interval which its middle base lies in. A window whose
middle base has no label is unlabelled: `NONE`.

With `quantiles` the labels are numbers, and the classes are q1 (lowest) to qN: equal numbers of
rows, and equal numbers never apart.
"""

import logging
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genodiff.data.store import Store
from genodiff.errors import DataError, UsageError
from genodiff.io.delimited import split_rows
from genodiff.io.file_kinds import sha256_file
from genodiff.io.text_lines import (
    RowReader,
    find_alike,
    is_bed_comment,
    read_number,
    read_text_lines,
)

log = logging.getLogger("genodiff")

NONE = -1
MOST_CLASSES = 4096
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_POSITION = re.compile(r"[0-9][0-9.,'’ \xa0\u202f]*(?:[eE][+-]?[0-9]+)?")
_WHOLE = -1  # the end of a row that is of a whole contig
_CLASS_FIX = "give a name of letters, digits, dots, dashes and underscores"

_CONTIG_COLUMN = re.compile(
    "(contig|chr(om)?(osome)?|scaffold|seq(uence|name|id)?|record|region|name|id|accession)s?", re.I
)
_LABEL_COLUMN = re.compile(
    "(label|class|species|organism|target|group|category|type|kind|value|score|y)(es|s)?", re.I
)

Ints = NDArray[np.int64]
_Row = tuple[str, int, int, str, int]
"""Contig, start, end, label and line."""


@dataclass(frozen=True)
class LabelTable:
    """The rows of a file of labels; `classes` are the names, sorted, and `sha256` the file's.

    `names_line` is the line of column names that was passed over, None without one.
    """

    path: str
    contigs: tuple[str, ...]
    starts: Ints
    ends: Ints
    labels: Ints
    """The number of each row's class."""
    lines: Ints
    classes: tuple[str, ...]
    sha256: str
    names_line: int | None = None


@dataclass(frozen=True)
class WindowLabels:
    """Labelled intervals of a store's flat positions, sorted and disjoint."""

    starts: Ints
    ends: Ints
    labels: Ints

    def of(self, start: Ints, length: Ints) -> Ints:
        """The labels of windows, by their middle base; `NONE` where it has none."""
        middle = start + length // 2
        at = np.searchsorted(self.starts, middle, side="right") - 1
        inside = (at >= 0) & (middle < self.ends[np.maximum(at, 0)])
        found: Ints = np.where(inside, self.labels[np.maximum(at, 0)], NONE)
        return found


def read_labels(
    path: str | Path, *, quantiles: int | None = None, column: int | None = None
) -> LabelTable:
    """The labels of a file (`column` from 1). Raises `DataError` naming the line, `UsageError`."""
    stripped = ((n, text.rstrip(" \t")) for n, text in read_text_lines(path, "a table of labels"))
    split = split_rows([(n, line) for n, line in stripped if not is_bed_comment(line)], str(path))
    # START and END, however these are written.
    placed = (len(f) > 3 and all(map(_POSITION.fullmatch, f[1:3])) for _, f in split)
    is_bed = sum(placed) > len(split) / 3
    names_line = None
    if split and _is_header([fields for _, fields in split], column, is_bed, quantiles is not None):
        names_line, split = split[0][0], split[1:]
    if not split:
        fix = "give rows of CONTIG START END LABEL, or CONTIG LABEL"
        raise DataError("holds no label", file=path, fix=fix)
    if not is_bed and column is None:
        _refuse_positions(path, split)
    rows = [_read_row(path, number, fields, column, is_bed) for number, fields in split]
    _refuse_contradictions(path, rows)
    names = [row[3] for row in rows]
    lines = np.array([row[4] for row in rows], np.int64)
    if quantiles is None:
        classes, labels = _name_classes(path, names, lines)
    else:
        classes, labels = _cut_quantiles(path, names, lines, quantiles)
    starts, ends = (np.array([row[i] for row in rows], np.int64) for i in (1, 2))
    contigs = tuple(row[0] for row in rows)
    digest = sha256_file(path)
    return LabelTable(str(path), contigs, starts, ends, labels, lines, classes, digest, names_line)


def table_labels(path: str, named: dict[str, str], sha256: str) -> LabelTable:
    """A table of labels in memory, contig → label. Raises `DataError` for a label that is none."""
    contigs = tuple(sorted(named))
    lines = np.zeros(len(contigs), np.int64)
    classes, labels = _name_classes(path, [named[c] for c in contigs], lines)
    ends = np.full(len(contigs), _WHOLE)
    return LabelTable(path, contigs, lines, ends, labels, lines, classes, sha256)


def place_labels(table: LabelTable, store: Store) -> WindowLabels:
    """The labels on the contigs of a store; rows of contigs that it lacks are left out.

    Raises `DataError` for intervals that overlap with different labels or lie outside, and where
    no contig is the store's.
    """
    known = {name: i for i, name in enumerate(store.names)}
    numbers = np.array([known.get(name, -1) for name in table.contigs], np.int64)
    kept = np.flatnonzero(numbers >= 0)
    if not len(kept):
        what = f"labels {table.contigs[0]} and others, and the genome has no such contig"
        raise DataError(what, file=table.path, fix=f"name contigs as {store.names[0]}")
    _tell_absent(table, numbers)
    sizes, offsets = np.asarray(store.lengths), np.asarray(store.offsets)
    contig = numbers[kept]
    end = np.where(table.ends[kept] == _WHOLE, sizes[contig], table.ends[kept])
    for row in np.flatnonzero(end > sizes[contig]):
        what = f"the interval ends at {end[row]}, beyond {store.names[contig[row]]}"
        line = int(table.lines[kept[row]])
        fix = f"it has {sizes[contig[row]]} bases"
        raise DataError(what, file=table.path, line=line, fix=fix)
    start, end = offsets[contig] + table.starts[kept], offsets[contig] + end
    order = np.lexsort((end, start))
    labels, lines = table.labels[kept], table.lines[kept]
    joined: list[list[int]] = []
    for i in order.tolist():
        if joined and start[i] < joined[-1][1]:
            if labels[i] != joined[-1][2]:
                what = f"overlaps line {joined[-1][3]}, which has another label"
                fix = "give each base one label"
                raise DataError(what, file=table.path, line=int(lines[i]), fix=fix)
            joined[-1][1] = max(joined[-1][1], int(end[i]))
        else:
            joined.append([int(start[i]), int(end[i]), int(labels[i]), int(lines[i])])
    found = np.array(joined, np.int64).reshape(-1, 4)
    return WindowLabels(found[:, 0].copy(), found[:, 1].copy(), found[:, 2].copy())


def _tell_absent(table: LabelTable, numbers: Ints) -> None:
    """Warn of contigs that a genome lacks (-1). Raises `DataError` for a row of column names."""
    absent = np.flatnonzero(numbers < 0)
    if len(absent) and not absent[0] and (table.labels == table.labels[0]).sum() == 1:
        what = f"the genome has no contig '{table.contigs[0]}', and no other row has the label "
        what += f"'{table.classes[table.labels[0]]}': are these column names?"
        fix = "start the line with #, or remove it"
        raise DataError(what, file=table.path, line=int(table.lines[0]), fix=fix)
    if len(absent):
        first = absent[0]
        log.warning(
            "%s: %d of %d rows are on contigs that the genome lacks, and are ignored (first: "
            "line %d, %s)",
            table.path, len(absent), len(numbers), table.lines[first], table.contigs[first],
        )  # fmt: skip


def _refuse_positions(path: str | Path, split: list[tuple[int, list[str]]]) -> None:
    """Raises `DataError` for a table CONTIG LABEL that has positions as a BED file has."""
    if min(len(fields) for _, fields in split) < 4:
        return
    bare = ([field.strip("'\"") for field in fields] for _, fields in split)
    columns = zip(*bare, strict=False)
    if sum(all(map(_POSITION.fullmatch, column)) for column in columns) > 1:
        what = "there are positions, and not in columns 2 and 3"
        fix = "write CONTIG START END LABEL, or name the label's column: --label-column"
        raise DataError(what, file=path, line=split[0][0], fix=fix)


def _refuse_contradictions(path: str | Path, rows: list[_Row]) -> None:
    """Raises `DataError` for column names between rows, and for a contig with two labels."""
    whole: dict[str, tuple[str, int]] = {}
    for contig, _, end, label, number in rows:
        if _CONTIG_COLUMN.fullmatch(contig) and _LABEL_COLUMN.fullmatch(label):
            what = f"'{contig}' and '{label}' are names of columns"
            raise DataError(what, file=path, line=number, fix="remove the line")
        other, line = whole.setdefault(contig, (label, number)) if end == _WHOLE else (label, 0)
        if other != label:
            what = f"the contig {contig} has the label '{other}' in line {line}, and '{label}' here"
            raise DataError(what, file=path, line=number, fix="give each contig one label")


def _is_header(rows: list[list[str]], column: int | None, is_bed: bool, numbers: bool) -> bool:
    """Whether the first row names columns: it is of another kind than those below."""
    first = rows[0]
    if is_bed:
        return len(first) > 3 and not any(any(c.isdigit() for c in f) for f in first[1:3])
    wanted = (column or 2) - 1
    if len(first) <= wanted:
        return False
    contig, label = first[0], first[wanted]
    if numbers and read_number(label) is None:
        rest = [row[wanted] if len(row) > wanted else "" for row in rows[1:]]
        return bool(rest) and all(read_number(text) is not None for text in rest)
    return bool(_CONTIG_COLUMN.fullmatch(contig) and _LABEL_COLUMN.fullmatch(label))


def _read_row(
    path: str | Path, number: int, fields: list[str], column: int | None, is_bed: bool
) -> _Row:
    start, end = 0, _WHOLE
    wanted = column or (4 if is_bed else 2)
    if wanted < 2:
        raise UsageError(f"--label-column {wanted} is the contig's", fix="give 2 or more")
    if len(fields) < wanted or not fields[wanted - 1]:
        fix = "separate CONTIG START END LABEL, or CONTIG LABEL, by tabs"
        raise DataError(f"has no label in column {wanted}", file=path, line=number, fix=fix)
    row = RowReader(path, number)
    if is_bed:
        start, end = (row.read_whole(text, "position") for text in fields[1:3])
        if start >= end:
            raise row.fault(f"{start} to {end} is no interval", "give START, from 0, below END")
    row.check_name(fields[0], "contig's name")
    if not fields[0] or " " in fields[0]:
        what = f"the contig's name '{fields[0]}' is empty or has a blank"
        raise row.fault(what, "give it without blanks")
    return fields[0], start, end, fields[wanted - 1], number


def _name_classes(path: str | Path, names: list[str], lines: Ints) -> tuple[tuple[str, ...], Ints]:
    classes = tuple(sorted(set(names)))
    first = dict(zip(reversed(names), reversed(lines.tolist()), strict=True))
    for name in dict.fromkeys(names):
        row = RowReader(path, first[name])
        row.check_given(name, "label", "remove the row; uncovered positions have no label")
        row.check_name(name, "label")
        if not _NAME.fullmatch(name):
            raise row.fault(f"the label '{name}' is no name of a class", _CLASS_FIX)
    if alike := find_alike(classes):
        line = first[alike[1]]
        what = f"the labels '{alike[0]}' and '{alike[1]}' differ in capitals only"
        raise DataError(what, file=path, line=line, fix="write one class in one way")
    numbers = [name for name in classes if read_number(name) is not None]
    words = [name for name in classes if name not in numbers]
    number, word = "is a number, and all others are names", "is no number, and all others are"
    for some, says in (numbers, number), (words, word):
        if len(classes) > 2 and len(some) == 1 == names.count(some[0]):
            what = f"the label '{some[0]}' {says}"
            fix = "remove the row, or name the class"
            raise DataError(what, file=path, line=first[some[0]], fix=fix)
    if len(classes) > MOST_CLASSES:
        what = f"has {len(classes):,} labels, more than {MOST_CLASSES:,}"
        raise DataError(what, file=path, fix="give --label-quantiles 4, where labels are numbers")
    place = {name: i for i, name in enumerate(classes)}
    return classes, np.array([place[name] for name in names], np.int64)


def _cut_quantiles(
    path: str | Path, names: list[str], lines: Ints, quantiles: int
) -> tuple[tuple[str, ...], Ints]:
    rows = zip(names, lines.tolist(), strict=True)
    fix = "give numbers, or leave --label-quantiles out"
    values = [RowReader(path, line).read_number(name, "label", fix) for name, line in rows]
    edges = np.quantile(values, np.arange(1, quantiles) / quantiles)
    labels = np.searchsorted(edges, values, side="left")
    for q in range(quantiles):
        if not (labels == q).any():
            what = f"too many rows have the same number for {quantiles} quantiles: "
            what += f"q{q + 1} is empty"
            raise DataError(what, file=path, fix="give fewer --label-quantiles")
    return tuple(f"q{q + 1}" for q in range(quantiles)), labels.astype(np.int64)
