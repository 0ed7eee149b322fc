"""Labelled sequences: what every benchmark, reader, baseline and fit of this room hands on.

Sequences are upper-case IUPAC DNA bytes. Labels are class numbers (int64, shape (n,)), several
yes/no answers (uint8, shape (n, classes)) or values (float64, shape (n,)). Coordinates are 0-based
half-open, strand "+", "-" or "" (unknown).
"""

import hashlib
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import reverse_complement
from genodiff.errors import DataError
from genodiff.io.diagnosis import describe_letter

IUPAC = b"ACGTNRYSWKMBDHV"


class Coordinates(NamedTuple):
    """The intervals of n sequences in a genome: four arrays of n."""

    contig: NDArray[np.str_]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    strand: NDArray[np.str_]

    def take(self, rows: NDArray[Any]) -> Self:
        """The places at `rows` (integers or a mask)."""
        return type(self)(*(values[rows] for values in self))


class Examples(NamedTuple):
    """n labelled sequences.

    `sequences` is empty where only coordinates are known. `coordinates` is None where they are not.
    """

    sequences: list[bytes]
    labels: NDArray[Any]
    names: list[str]
    coordinates: Coordinates | None = None
    share: float = 1.0
    """Of all examples that there are: less where a plan has read the first ones alone."""

    @property
    def forecast(self) -> int:
        """About how many examples there are."""
        return round(self.n / self.share)

    @property
    def n(self) -> int:
        """Number of examples (`len` of a named tuple is its number of fields)."""
        return len(self.labels)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Bases of each example, from its sequence or else from its place."""
        if self.sequences or self.coordinates is None:
            return np.fromiter(map(len, self.sequences), np.int64, len(self.sequences))
        return self.coordinates.end - self.coordinates.start

    def take(self, index: NDArray[Any]) -> Self:
        """The examples at `index` (integers or a mask), in that order."""
        rows = np.flatnonzero(index) if index.dtype == bool else index
        return self._replace(
            sequences=[self.sequences[i] for i in rows] if self.sequences else [],
            labels=self.labels[rows],
            names=[self.names[i] for i in rows],
            coordinates=None if self.coordinates is None else self.coordinates.take(rows),
        )


class Parts(NamedTuple):
    """The train and test part of a task, and notes on what was done to them.

    `valid_index` are the rows of train that the benchmark itself validates on. `groups` numbers
    what must stay together when train is split, for each row of train (see `tasks.resplit`); None
    where every example stands alone.
    """

    train: Examples
    test: Examples
    notes: tuple[str, ...] = ()
    valid_index: NDArray[np.int64] | None = None
    groups: NDArray[np.int64] | None = None


def concatenate(first: Examples, second: Examples) -> Examples:
    """Both, one after the other; places stay only where both have them, sequences likewise."""
    joined = None
    if first.coordinates is not None and second.coordinates is not None:
        pairs = zip(first.coordinates, second.coordinates, strict=True)
        columns: list[Any] = [np.concatenate(pair) for pair in pairs]
        joined = Coordinates(*columns)
    n = first.n + second.n
    share = n / (first.forecast + second.forecast) if n else 1.0
    both = bool(first.sequences) == bool(second.sequences) or not first.n or not second.n
    return Examples(
        first.sequences + second.sequences if both else [],
        np.concatenate([first.labels, second.labels]),
        first.names + second.names,
        joined,
        share,
    )


def check_sequence(
    raw: bytes, file: str | Path, *, line: int | None = None, record: str | None = None
) -> bytes:
    """`raw` in upper case without blanks at its ends.

    Raises `DataError` where it is empty or not IUPAC DNA.
    """
    sequence = raw.strip(b" \t\r\n").upper()
    if not sequence:
        what, fix = "empty sequence", "remove it, or give its sequence"
    elif sequence.translate(None, IUPAC):
        at = len(sequence) - len(sequence.lstrip(IUPAC))
        what, fix = describe_letter(raw.strip(b" \t\r\n"), at)
        what = f"position {at + 1:,}: {what}"
    else:
        return sequence
    raise DataError(what, file=file, line=line, record=record, fix=fix)


def fingerprint_sequences(sequences: Iterable[bytes], *, both_strands: bool = False) -> list[bytes]:
    """16 bytes of sha256 of each sequence.

    With `both_strands`, a sequence and its reverse complement have the same fingerprint.
    """
    if both_strands:
        sequences = (min(s, bytes(reverse_complement(s))) for s in sequences)  # type: ignore[arg-type]
    return [hashlib.sha256(s).digest()[:16] for s in sequences]


def find_known(keys: Iterable[Hashable], known: Iterable[Hashable]) -> NDArray[np.bool_]:
    """Which `keys` are among the `known` ones."""
    known = set(known)
    return np.array([key in known for key in keys], bool)


def count_classes(labels: NDArray[Any], classes: Sequence[str]) -> dict[str, int]:
    """How many examples each class has; for several yes/no answers, how many say yes."""
    if labels.ndim == 2:
        found = labels.sum(axis=0)
    else:
        found = np.bincount(labels.astype(np.int64), minlength=len(classes))
    return {name: int(count) for name, count in zip(classes, found, strict=True)}


def find_overlaps(query: Coordinates, target: Coordinates) -> NDArray[np.bool_]:
    """True for each interval of `query` that shares a base with one of `target`."""
    return count_overlaps(query, target, np.zeros(len(target.contig), np.int64), 1)[:, 0] > 0


def count_overlaps(
    query: Coordinates, target: Coordinates, labels: NDArray[np.int64], n_classes: int
) -> NDArray[np.int64]:
    """(queries, classes): how many targets of each class share a base with each query interval.

    These are the intervals that start before its end less those that end at or before its start:
    two binary searches per contig and class, exact for any mixture of lengths. Strands do not
    matter.
    """
    counts = np.zeros((len(query.contig), n_classes), np.int64)
    rows_of, targets_of = _by_contig(query.contig), _by_contig(target.contig)
    for contig, rows in rows_of.items():
        near = targets_of.get(contig)
        if near is None:
            continue
        for label in range(n_classes):
            chosen = near[labels[near] == label]
            begun = np.searchsorted(np.sort(target.start[chosen]), query.end[rows], side="left")
            ended = np.searchsorted(np.sort(target.end[chosen]), query.start[rows], side="right")
            counts[rows, label] = begun - ended
    return counts


def count_equal(
    query: Coordinates, target: Coordinates, labels: NDArray[np.int64], n_classes: int
) -> NDArray[np.int64]:
    """(queries, classes): how many targets of each class have the query's contig, start and end."""
    contig = np.unique(np.concatenate([target.contig, query.contig]), return_inverse=True)[1]
    keys = np.stack(
        [
            contig,
            np.concatenate([target.start, query.start]),
            np.concatenate([target.end, query.end]),
        ]
    )
    order = np.lexsort(keys)
    group = np.empty(keys.shape[1], np.int64)
    group[order] = (
        np.cumsum(np.append(0, (np.diff(keys[:, order]) != 0).any(axis=0))) if len(order) else 0
    )
    counts = np.zeros((group.max(initial=-1) + 1, n_classes), np.int64)
    np.add.at(counts, (group[: len(labels)], labels), 1)
    return counts[group[len(labels) :]]


def _by_contig(contig: NDArray[np.str_]) -> dict[str, NDArray[np.int64]]:
    """contig → the rows that are on it."""
    names, codes = np.unique(contig, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    cuts = np.searchsorted(codes[order], np.arange(len(names) + 1))
    return {str(name): order[cuts[i] : cuts[i + 1]] for i, name in enumerate(names)}
