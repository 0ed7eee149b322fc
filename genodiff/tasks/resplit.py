"""Splits without leaks: whole chromosomes held out, or train without what test has too.

`chrom-holdout` pools both parts; the examples on the held-out contigs test, all others train.
Regions that are not contigs of a genome (transcripts) are held out by a hash of their name, one in
eight. `dedup` keeps the test part (each sequence once) and takes out of train what equals a test
sequence on either strand, or whose interval shares a base with a test interval, whatever the
classes. Sequences that are alike but not equal stay. `homology` pools both parts and splits whole
clusters of sequences that are alike (`tasks.homology`); as large a share as before tests.

Where whole contigs or clusters are kept together, `Parts.groups` says which, and validation keeps
them together too (`seed_split`).
"""

import hashlib
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from genodiff.counter import Purpose, uniforms
from genodiff.errors import DataError
from genodiff.tasks.examples import (
    Parts,
    concatenate,
    count_classes,
    find_known,
    find_overlaps,
    fingerprint_sequences,
)
from genodiff.tasks.homology import find_clusters
from genodiff.tasks.split_names import THRESHOLD

_HASHED = 8
"""One in so many regions that are no contig of a genome is held out."""


def resplit(
    split: str,
    parts: Parts,
    classes: tuple[str, ...],
    held_out: frozenset[str],
    threshold: float = THRESHOLD,
) -> Parts:
    """`parts` split again as `split` (of `RESPLITS`) says, with a note of what changed.

    `held_out` are the contigs of chrom-holdout, `threshold` is homology's. Raises `DataError` where
    a class is left without examples in a part.
    """
    if split == "chrom-holdout":
        again = chrom_holdout(parts, held_out)
    else:
        again = dedup(parts) if split == "dedup" else split_by_homology(parts, threshold)
    for part, examples in (("train", again.train), ("test", again.test)):
        counts = count_classes(examples.labels, classes) if classes else {}
        empty = [name for name, n in counts.items() if not n]
        if empty or not examples.n:
            what = f"split {split}: no {part} example is left"
            what += f" of class '{empty[0]}'" if empty else ""
            raise DataError(what, fix="use another split")
    return again


def chrom_holdout(parts: Parts, held_out: frozenset[str]) -> Parts:
    """Both parts pooled and split by contig; needs coordinates."""
    whole = concatenate(parts.train, parts.test)
    if whole.coordinates is None:
        what = "split chrom-holdout needs coordinates, which these data lack"
        raise DataError(what, fix="use --split dedup, or give coordinates")
    contigs = np.unique(whole.coordinates.contig)
    many = len(contigs) > 1000  # regions stand beside contigs of a genome, or in their place
    chosen = [
        c for c in contigs if c in held_out or (many and not c.startswith("chr") and _is_drawn(c))
    ]
    if not held_out and not chosen:
        chosen = [c for c in contigs if _is_drawn(c)]
    test = np.isin(whole.coordinates.contig, chosen)
    named = ", ".join(chosen) if len(chosen) <= 12 else f"{len(chosen):,} regions"
    note = (
        f"chrom-holdout: {int(test.sum()):,} examples on {named} test, {int((~test).sum()):,} train"
    )
    train = whole.take(~test)
    assert train.coordinates is not None
    groups = np.unique(train.coordinates.contig, return_inverse=True)[1].astype(np.int64)
    return Parts(train, whole.take(test), (*parts.notes, note), groups=groups)


def split_by_homology(parts: Parts, threshold: float = THRESHOLD) -> Parts:
    """Both parts pooled and split so that sequences that are alike stay together.

    Clusters are drawn for the test part, in an order that is always the same, until it has its
    former share of the examples. Raises `DataError` without sequences, and where the clusters are
    too large to be split.
    """
    whole = concatenate(parts.train, parts.test)
    if not whole.sequences:
        fix = "give the genome's FASTA"
        raise DataError("split homology needs sequences, which these data lack", fix=fix)
    clusters = find_clusters(whole.sequences, threshold)
    groups = np.where(clusters.tied, FITTED, clusters.of)
    test = draw_groups(groups, parts.test.n, Purpose.FINETUNE_SPLIT, seed=0, stream=2)
    sizes = np.bincount(clusters.of)
    note = (
        f"homology: {len(sizes):,} clusters of sequences with {threshold:.0%} of their 24-mers in "
        f"common, the largest of {int(sizes.max()):,}; {int(test.sum()):,} examples test, "
        f"{int((~test).sum()):,} train, of which {int(clusters.tied.sum()):,} cannot be held out"
    )
    train = whole.take(~test)
    return Parts(train, whole.take(test), (*parts.notes, note), groups=groups[~test])


def _is_drawn(name: str) -> bool:
    """Whether the hash of a region's name holds it out."""
    return hashlib.sha256(name.encode()).digest()[0] % _HASHED == 0


def dedup(parts: Parts) -> Parts:
    """Train without what is in test, test without its own repetitions."""
    train, test = parts.train, parts.test
    leaks = np.zeros(train.n, bool)
    repeated = np.zeros(test.n, bool)
    if train.sequences and test.sequences:
        keys = fingerprint_sequences(test.sequences, both_strands=True)
        leaks |= find_known(fingerprint_sequences(train.sequences, both_strands=True), keys)
        repeated |= _stood_before(keys)
    if train.coordinates is not None and test.coordinates is not None:
        leaks |= find_overlaps(train.coordinates, test.coordinates)
        intervals = zip(*(values.tolist() for values in test.coordinates[:3]), strict=True)
        repeated |= _stood_before(list(intervals))
    kept = ~leaks
    note = (
        f"dedup: {int(leaks.sum()):,} of {train.n:,} train and {int(repeated.sum()):,} of "
        f"{test.n:,} test examples left out; they were equal or overlapped, and sequences "
        "that are only alike stay (split homology holds them apart)"
    )
    valid = parts.valid_index
    if valid is not None:  # where these rows stand once only the kept ones are left
        valid = (np.cumsum(kept) - 1)[valid[kept[valid]]]
    return Parts(train.take(kept), test.take(~repeated), (*parts.notes, note), valid)


def _stood_before(keys: Sequence[Hashable]) -> NDArray[np.bool_]:
    """True for every key that has stood before."""
    first: dict[Hashable, int] = {}
    return np.array([first.setdefault(key, i) != i for i, key in enumerate(keys)], bool)


FITTED = -1
"""The group of examples that are never held out."""

_OVER = 1.5  # a group is passed over where more than this times the wanted number would be drawn


def draw_groups(
    groups: NDArray[np.int64], wanted: int, purpose: Purpose, seed: int, stream: int
) -> NDArray[np.bool_]:
    """Which examples are held out: those of whole groups, drawn until `wanted` are.

    `groups` (n,) is each example's. The draw is a pure function of the groups, `purpose`, `seed`
    and `stream`. Where every group is too large, the smallest is held out. Raises `DataError` where
    that would leave nothing on one side.
    """
    names, where, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    free = np.flatnonzero(names != FITTED)
    order = free[np.argsort(uniforms(seed, purpose, stream, len(free)), kind="stable")]
    held = np.zeros(len(names), bool)
    drawn = 0
    for i in order.tolist():
        if drawn >= wanted:
            break
        if drawn + sizes[i] <= _OVER * wanted:
            held[i] = True
            drawn += int(sizes[i])
    if not drawn and len(free):
        held[free[np.argmin(sizes[free])]] = True
    if not held.any() or held.all():
        what = "the examples cannot be split: all candidates for the test part are similar"
        raise DataError(what, fix="use another split, or a higher --similarity")
    found: NDArray[np.bool_] = held[where]
    return found
