"""Labels of windows, for conditional training: a class for each contig or interval.

A file is either a BED file, CONTIG START END LABEL, or a table, CONTIG LABEL (species as label),
separated by tabs. The label of a window is that of the interval which its middle base lies in. A
window whose middle base has no label is unlabelled: `NONE`.

With `quantiles` the labels are numbers, and the classes are q1 (lowest) to qN: equal numbers of
rows, and equal numbers never apart.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genodiff.data.store import Store
from genodiff.errors import DataError, UsageError
from genodiff.io.identity import sha256_file
from genodiff.io.text_lines import read_text_lines

NONE = -1
MOST_CLASSES = 4096
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_WHOLE = -1  # the end of a row that is of a whole contig
_CLASS_FIX = "give a name of letters, digits, dots, dashes and underscores"

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class LabelTable:
    """The rows of a file of labels; `classes` are the names, sorted, and `sha256` the file's."""

    path: str
    contigs: tuple[str, ...]
    starts: Ints
    ends: Ints
    labels: Ints
    """The number of each row's class."""
    lines: Ints
    classes: tuple[str, ...]
    sha256: str


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
    """The labels of a file. `column` counts from 1; None is 4 of a BED file and 2 of a table.

    Raises `DataError` naming the line, `UsageError` for a column that cannot be.
    """
    rows: list[tuple[str, int, int, str, int]] = []
    for number, text in read_text_lines(path, "a table of labels"):
        line = text.rstrip(" \t")
        if not line or line[0] == "#" or line.split(None, 1)[0] in ("track", "browser"):
            continue
        rows.append(_read_row(path, number, line.split("\t"), column))
    if not rows:
        fix = "give rows of CONTIG START END LABEL, or CONTIG LABEL"
        raise DataError("holds no label", file=path, fix=fix)
    names = [row[3] for row in rows]
    lines = np.array([row[4] for row in rows], np.int64)
    if quantiles is None:
        classes, labels = _name_classes(path, names, lines)
    else:
        classes, labels = _cut_quantiles(path, names, lines, quantiles)
    starts, ends = (np.array([row[i] for row in rows], np.int64) for i in (1, 2))
    contigs = tuple(row[0] for row in rows)
    return LabelTable(str(path), contigs, starts, ends, labels, lines, classes, sha256_file(path))


def table_labels(path: str, named: dict[str, str], sha256: str) -> LabelTable:
    """A table of labels from values in memory: contig → label; `path` is for messages.

    Raises `DataError` for a label that is no name.
    """
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
                raise DataError(
                    f"overlaps line {joined[-1][3]}, which has another label",
                    file=table.path,
                    line=int(lines[i]),
                    fix="give each base one label",
                )
            joined[-1][1] = max(joined[-1][1], int(end[i]))
        else:
            joined.append([int(start[i]), int(end[i]), int(labels[i]), int(lines[i])])
    found = np.array(joined, np.int64).reshape(-1, 4)
    return WindowLabels(found[:, 0].copy(), found[:, 1].copy(), found[:, 2].copy())


def _read_row(
    path: str | Path, number: int, fields: list[str], column: int | None
) -> tuple[str, int, int, str, int]:
    bed = len(fields) > 3 and fields[1].isdecimal() and fields[2].isdecimal()
    start, end = (int(fields[1]), int(fields[2])) if bed else (0, _WHOLE)
    if bed and start >= end:
        raise DataError(f"{start} to {end} is no interval", file=path, line=number)
    wanted = column or (4 if bed else 2)
    if wanted < 2:
        raise UsageError(f"--label-column {wanted} is the contig's", fix="give 2 or more")
    if len(fields) < wanted or not fields[wanted - 1].strip():
        raise DataError(
            f"has no label in column {wanted}",
            file=path,
            line=number,
            fix="separate CONTIG START END LABEL, or CONTIG LABEL, by tabs",
        )
    return fields[0], start, end, fields[wanted - 1].strip(), number


def _name_classes(path: str | Path, names: list[str], lines: Ints) -> tuple[tuple[str, ...], Ints]:
    classes = tuple(sorted(set(names)))
    for name, line in zip(names, lines.tolist(), strict=True):
        if not _NAME.fullmatch(name):
            raise DataError(f"label '{name}'", file=path, line=line, fix=_CLASS_FIX)
    if len(classes) > MOST_CLASSES:
        raise DataError(
            f"has {len(classes):,} labels, more than {MOST_CLASSES:,}",
            file=path,
            fix="give --label-quantiles 4, where labels are numbers",
        )
    place = {name: i for i, name in enumerate(classes)}
    return classes, np.array([place[name] for name in names], np.int64)


def _cut_quantiles(
    path: str | Path, names: list[str], lines: Ints, quantiles: int
) -> tuple[tuple[str, ...], Ints]:
    values = np.empty(len(names))
    for i, name in enumerate(names):
        try:
            values[i] = float(name)
        except ValueError:
            values[i] = np.nan
        if not np.isfinite(values[i]):
            fix = "give numbers, or leave --label-quantiles out"
            raise DataError(f"label '{name}' is no number", file=path, line=int(lines[i]), fix=fix)
    edges = np.quantile(values, np.arange(1, quantiles) / quantiles)
    labels = np.searchsorted(edges, values, side="left")
    for q in range(quantiles):
        if not (labels == q).any():
            raise DataError(
                f"too many rows have the same number for {quantiles} quantiles: q{q + 1} is empty",
                file=path,
                fix="give fewer --label-quantiles",
            )
    return tuple(f"q{q + 1}" for q in range(quantiles)), labels.astype(np.int64)
