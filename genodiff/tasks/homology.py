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
Of large sets the first step counts a sixteenth of the 24-mers, and the last goes by sixteenths.

300,000 sequences of 250 to 500 bases (112 million 24-mers) take 40 s of one core and 2.5 GB.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array  # type: ignore[import-untyped]
from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]

from genodiff.data.kmers import SLICES, K, find_slices, iterate_kmers
from genodiff.domain import TEXT
from genodiff.tasks.examples import Examples, fingerprint_sequences
from genodiff.tasks.split_names import THRESHOLD

_MANY = 32
_LARGE = 1 << 24  # 24-mers above which the first step counts a sample
_CHUNK = 1 << 24

Words = NDArray[np.uint64]
Rows = NDArray[np.int64]


class Clusters(NamedTuple):
    """The clusters of n sequences."""

    of: Rows  # (n,) the number of each sequence's cluster, whatever the order of the sequences
    tied: NDArray[np.bool_]  # (n,) whether the sequence's cluster must stay with train


def find_clusters(sequences: list[bytes], threshold: float = THRESHOLD) -> Clusters:
    """The clusters of sequences (upper-case DNA) that are alike; see the module.

    A sequence without a 24-mer is alike to nothing. The result depends on the set of sequences
    alone, not on their order.
    """
    order = sorted(range(len(sequences)), key=sequences.__getitem__)
    kmers = _Kmers([sequences[i] for i in order])
    first_slice = kmers.take_slice(0)
    label = _find_labels(kmers, first_slice, threshold)
    outside = _share_outside(kmers, first_slice, label)
    tied = np.zeros(label.max(initial=-1) + 1, bool)
    tied[label[outside >= threshold]] = True
    of = np.empty(len(order), np.int64)
    of[order] = label
    return Clusters(of, tied[of])


class _Slice(NamedTuple):
    """Each distinct (24-mer, sequence) of a slice, sorted, and at how many places it stands."""

    kmers: Words
    owner: Rows
    places: Rows


class _Kmers:
    """The 24-mers of all sequences, to be had slice by slice where they are many."""

    def __init__(self, sequences: list[bytes]) -> None:
        room = sum(max(0, len(s) - K + 1) for s in sequences)
        words, owner, used = np.empty(room, np.uint64), np.empty(room, np.int32), 0
        for some, whose in iterate_kmers(sequences):
            words[used : used + len(some)] = some
            owner[used : used + len(some)] = whose
            used += len(some)
        self.n = len(sequences)
        self._words, self._owner = words[:used], owner[:used]
        self.slices = SLICES if used > _LARGE else 1
        self._ends = np.cumsum(np.bincount(self._owner, minlength=self.n))

    def of(self, i: int) -> Words:
        """The distinct 24-mers of a sequence, sorted."""
        start = int(self._ends[i - 1]) if i else 0
        return np.unique(self._words[start : int(self._ends[i])])

    def take_slice(self, number: int) -> _Slice:
        """One slice of the 24-mers of all sequences."""
        at: Any = slice(None)
        if self.slices > 1:
            chosen = [
                np.flatnonzero(find_slices(self._words[a : a + _CHUNK]) == number) + a
                for a in range(0, len(self._words), _CHUNK)
            ]
            at = np.concatenate(chosen)
        words, owner = self._words[at], self._owner[at]
        order = np.argsort(words, kind="stable")  # owners ascend already
        words, owner = words[order], owner[order].astype(np.int64)
        new = np.ones(len(words), bool)
        new[1:] = (words[1:] != words[:-1]) | (owner[1:] != owner[:-1])
        first = np.flatnonzero(new)
        return _Slice(words[first], owner[first], np.diff(np.append(first, len(words))))


def _find_labels(kmers: _Kmers, some: _Slice, threshold: float) -> Rows:
    """The number of each sequence's cluster, from 0 in order of appearance."""
    codes, shared = _count(_list_pairs(some.kmers, some.owner, kmers.n))
    first, second = np.divmod(codes, max(kmers.n, 1))
    size = np.bincount(some.owner, minlength=kmers.n)
    share = shared / np.maximum(np.minimum(size[first], size[second]), 1)
    sure = (share >= threshold) & (kmers.slices == 1)
    edges = np.ones(sure.sum(), bool), (first[sure], second[sure])
    graph = coo_array(edges, (kmers.n, kmers.n))
    label = connected_components(graph, directed=False)[1].astype(np.int64)
    maybe = ~sure & (share >= threshold / 2)
    return _compare_exactly(label, first[maybe], second[maybe], share[maybe], kmers, threshold)


def _find_groups(values: NDArray[Any]) -> tuple[Rows, Rows]:
    """Where each run of equal values begins, and its length."""
    start = np.flatnonzero(values[1:] != values[:-1]) + 1
    start = np.concatenate([np.zeros(min(len(values), 1), np.int64), start])
    return start, np.diff(np.append(start, len(values)))


def _list_pairs(kmers: Words, owner: Rows, n: int) -> Iterator[Rows]:
    """Pairs first < second, as first · n + second, once for each 24-mer in common that counts."""
    start, group = _find_groups(kmers)
    head = np.repeat(start, group)  # where the group of each entry begins
    many = np.repeat(group > _MANY, group)
    for step in range(1, min(_MANY, int(group.max(initial=1)))):
        same = (kmers[step:] == kmers[:-step]) & ~many[step:]
        yield owner[:-step][same] * n + owner[step:][same]
    rest = many & (head != np.arange(len(kmers)))
    yield owner[head[rest]] * n + owner[rest]


def _count(parts: Iterable[Rows]) -> tuple[Rows, Rows]:
    """The distinct numbers of all parts, ascending, and their counts, in bounded memory."""
    codes, counts = np.empty(0, np.int64), np.empty(0, np.int64)
    waiting: list[Rows] = []
    for some in parts:
        waiting.append(some)
        if sum(map(len, waiting)) > max(_CHUNK, len(codes)):
            codes, counts = _merge_counts(codes, counts, waiting)
            waiting = []
    return _merge_counts(codes, counts, waiting)


def _merge_counts(codes: Rows, counts: Rows, waiting: list[Rows]) -> tuple[Rows, Rows]:
    new = np.sort(np.concatenate([codes[:0], *waiting]))
    at, count = _find_groups(new)
    both, where = np.unique(np.concatenate([codes, new[at]]), return_inverse=True)
    total = np.bincount(where, np.concatenate([counts, count]), len(both))
    return both, total.astype(np.int64)


def _compare_exactly(
    label: Rows, first: Rows, second: Rows, share: NDArray[np.float64], kmers: _Kmers, least: float
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
        one, other = kmers.of(a), kmers.of(b)
        common = len(np.intersect1d(one, other, assume_unique=True))
        if common >= least * min(len(one), len(other)):
            parent[max(here, there)] = min(here, there)
    roots = np.array([find_root(i) for i in range(len(parent))], np.int64)
    return np.unique(roots[label], return_inverse=True)[1] if len(label) else label


def _share_outside(kmers: _Kmers, first: _Slice, label: Rows) -> NDArray[np.float64]:
    """The share of each sequence's 24-mers, by place, that a sequence of another cluster has."""
    shared, total = np.zeros(kmers.n), np.zeros(kmers.n)
    for number in range(kmers.slices):
        words, owner, places = kmers.take_slice(number) if number else first
        if len(words):
            cluster = label[owner]
            start, group = _find_groups(words)
            several = np.maximum.reduceat(cluster, start) != np.minimum.reduceat(cluster, start)
            shared += np.bincount(owner, places * np.repeat(several, group), kmers.n)
            total += np.bincount(owner, places, kmers.n)
    return shared / np.maximum(total, 1)


def list_test_clusters(test: Examples, domain: str) -> list[list[int]] | None:
    """The clusters of two examples and more, by row, in order: each counts as one test.

    Of DNA see the module; texts of the same words are one. None without sequences.
    """
    if not test.sequences:
        return None
    if domain == TEXT.name:
        known: dict[bytes, int] = {}
        keys = fingerprint_texts(test.sequences)
        number = np.array([known.setdefault(key, len(known)) for key in keys], np.int64)
    else:
        number = find_clusters(test.sequences).of
    order = np.argsort(number, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(number[order])) + 1)
    return [group.tolist() for group in groups if len(group) > 1]


def number_clusters(clusters: list[list[int]], n: int) -> NDArray[np.int64]:
    """The number of each of `n` examples' cluster, from what `list_test_clusters` gave."""
    number = np.arange(n)
    for rows in clusters:
        number[rows] = rows[0]
    return number


def fingerprint_texts(sentences: list[bytes]) -> list[bytes]:
    """Equal for texts of the same words, whatever their case and blanks."""
    return fingerprint_sequences(
        b"\t".join(b" ".join(f.split()) for f in s.lower().split(b"\t")) for s in sentences
    )
