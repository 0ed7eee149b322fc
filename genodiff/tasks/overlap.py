"""Overlap of intervals: how many targets of each class a query overlaps or equals.

The intervals that overlap [start, end) are those that start before `end` less those that end at or
before `start`: two binary searches per contig and class, exact for any mixture of lengths. Strands
do not matter.
"""

import numpy as np
from numpy.typing import NDArray

from genodiff.tasks.examples import Coordinates


def find_overlaps(query: Coordinates, target: Coordinates) -> NDArray[np.bool_]:
    """True for each interval of `query` that shares a base with one of `target`."""
    return count_overlaps(query, target, np.zeros(len(target.contig), np.int64), 1)[:, 0] > 0


def count_overlaps(
    query: Coordinates, target: Coordinates, labels: NDArray[np.int64], n_classes: int
) -> NDArray[np.int64]:
    """(queries, classes): how many targets of each class share a base with each query interval."""
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
