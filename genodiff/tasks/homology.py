"""Clusters of sequences that are alike, so that a split can keep them together.

Two sequences are alike when one of them has at least a share `threshold` of its distinct 24-mers in
common with the other, on either strand (containment). A cluster is what alike pairs connect.

    n_a          distinct 24-mers of a, a 24-mer and its reverse complement being one
    containment  n_ab / min(n_a, n_b)

A sequence may share much with several clusters together and little with each. Its cluster is then
`tied`: a split that puts tied clusters into train leaves no test or validation sequence that has a
share `threshold` of its 24-mers in train, whichever of the other clusters it holds out.

Pairs are found in two steps. Counts over 24-mers give candidates: all pairs of the sequences that
have a 24-mer, or, of one that more than `_MANY` have, the pairs with the first of them. The counts
are lower bounds, so a pair that reaches the threshold is certain; the others are compared exactly.
Of large sets the first step counts a sixteenth of the 24-mers.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array  # type: ignore[import-untyped]
from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]

from genodiff.data.kmers import collect_kmers, in_sample
from genodiff.tasks.split_names import THRESHOLD

_MANY = 32
_LARGE = 1 << 24  # 24-mers above which the first step counts a sample
_CHUNK = 1 << 24

Words = NDArray[np.uint64]
Rows = NDArray[np.int64]


class Clusters(NamedTuple):
    """The clusters of n sequences."""

    of: Rows  # (n,) the number of each sequence's cluster, from 0 in order of appearance
    tied: NDArray[np.bool_]  # (n,) whether the sequence's cluster must stay with train


def find_clusters(sequences: list[bytes], threshold: float = THRESHOLD) -> Clusters:
    """The clusters of sequences (upper-case DNA) that are alike; see the module.

    A sequence without a 24-mer is alike to nothing. The result depends on the sequences and their
    order alone.
    """
    kmers, owner = collect_kmers(sequences)
    kmers, owner, places = _count_distinct(kmers, owner)
    n = np.bincount(owner, minlength=len(sequences))
    sampled = len(kmers) > _LARGE
    chosen = in_sample(kmers) if sampled else np.ones(len(kmers), bool)
    first, second, shared = _count_shared(kmers[chosen], owner[chosen], len(sequences))
    size = np.bincount(owner[chosen], minlength=len(sequences)) if sampled else n
    share = shared / np.maximum(np.minimum(size[first], size[second]), 1)
    sure = (share >= threshold) if not sampled else np.zeros(len(share), bool)
    label = _connect(len(sequences), first[sure], second[sure])
    maybe = ~sure & (share >= threshold / 2)
    label = _compare_exactly(
        label, first[maybe], second[maybe], share[maybe], _by_owner(kmers, owner, n), threshold
    )
    outside = _share_outside(kmers, owner, places, label, len(sequences))
    tied = np.zeros(label.max(initial=-1) + 1, bool)
    tied[label[outside >= threshold]] = True
    return Clusters(label, tied[label])


def _count_distinct(kmers: Words, owner: Rows) -> tuple[Words, Rows, Rows]:
    """Each distinct (24-mer, owner) once, sorted by 24-mer; and at how many places it stands."""
    order = np.lexsort((owner, kmers))
    kmers, owner = kmers[order], owner[order]
    new = np.ones(len(kmers), bool)
    new[1:] = (kmers[1:] != kmers[:-1]) | (owner[1:] != owner[:-1])
    at = np.flatnonzero(new)
    return kmers[at], owner[at], np.diff(np.append(at, len(kmers)))


def _find_groups(values: NDArray[Any]) -> tuple[Rows, Rows]:
    """Where each run of equal values begins, and its length."""
    start = np.flatnonzero(values[1:] != values[:-1]) + 1
    start = np.concatenate([np.zeros(min(len(values), 1), np.int64), start])
    return start, np.diff(np.append(start, len(values)))


def _count_shared(kmers: Words, owner: Rows, n: int) -> tuple[Rows, Rows, Rows]:
    """Pairs first < second that have 24-mers in common, and how many were counted."""
    start, group = _find_groups(kmers)
    head = np.repeat(start, group)  # where the group of each entry begins
    many = np.repeat(group > _MANY, group)
    counted = _Counter()
    for step in range(1, min(_MANY, int(group.max(initial=1)))):
        same = (kmers[step:] == kmers[:-step]) & ~many[step:]
        counted.add(owner[:-step][same] * n + owner[step:][same])
    rest = many & (head != np.arange(len(kmers)))
    counted.add(owner[head[rest]] * n + owner[rest])
    codes, shared = counted.finish()
    return codes // max(n, 1), codes % max(n, 1), shared


class _Counter:
    """Counts how often each number was added, in bounded memory."""

    def __init__(self) -> None:
        self._codes, self._counts = np.empty(0, np.int64), np.empty(0, np.int64)
        self._waiting: list[Rows] = []
        self._size = 0

    def add(self, codes: Rows) -> None:
        """Count these."""
        self._waiting.append(codes)
        self._size += len(codes)
        if self._size > max(_CHUNK, len(self._codes)):
            self._merge()

    def finish(self) -> tuple[Rows, Rows]:
        """The numbers, ascending, and their counts."""
        self._merge()
        return self._codes, self._counts

    def _merge(self) -> None:
        new = np.sort(np.concatenate(self._waiting)) if self._waiting else np.empty(0, np.int64)
        at, count = _find_groups(new)
        codes = np.concatenate([self._codes, new[at]])
        counts = np.concatenate([self._counts, count])
        self._codes, where = np.unique(codes, return_inverse=True)
        self._counts = np.bincount(where, counts, len(self._codes)).astype(np.int64)
        self._waiting, self._size = [], 0


def _connect(n: int, first: Rows, second: Rows) -> Rows:
    """The number of each one's component, from 0 in order of appearance."""
    graph = coo_array((np.ones(len(first), bool), (first, second)), (n, n))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def _by_owner(kmers: Words, owner: Rows, n: Rows) -> list[Words]:
    """The distinct 24-mers of each sequence, sorted."""
    return np.split(kmers[np.argsort(owner, kind="stable")], np.cumsum(n)[:-1])


def _compare_exactly(
    label: Rows,
    first: Rows,
    second: Rows,
    share: NDArray[np.float64],
    of: list[Words],
    least: float,
) -> Rows:
    """The components after the alike among the candidates have been joined too, nearest first."""
    parent = np.arange(label.max(initial=-1) + 1).tolist()

    def find_root(i: int) -> int:
        while parent[i] != i:
            parent[i] = i = parent[parent[i]]
        return i

    for at in np.argsort(-share, kind="stable").tolist():
        a, b = int(first[at]), int(second[at])
        here, there = find_root(label[a]), find_root(label[b])
        if here == there:
            continue
        common = len(np.intersect1d(of[a], of[b], assume_unique=True))
        if common >= least * min(len(of[a]), len(of[b])):
            parent[max(here, there)] = min(here, there)
    roots = np.array([find_root(i) for i in range(len(parent))], np.int64)
    return np.unique(roots[label], return_inverse=True)[1] if len(label) else label


def _share_outside(
    kmers: Words, owner: Rows, places: Rows, label: Rows, n: int
) -> NDArray[np.float64]:
    """The share of each sequence's 24-mers, by place, that a sequence of another cluster has."""
    cluster = label[owner]
    if not len(kmers):
        return np.zeros(n)
    start, group = _find_groups(kmers)
    several = np.maximum.reduceat(cluster, start) != np.minimum.reduceat(cluster, start)
    outside = np.repeat(several, group)
    total = np.bincount(owner, places, n)
    return np.bincount(owner, places * outside, n) / np.maximum(total, 1)
