"""Conserved elements: maximal scoring segments of `lod`, with a false discovery rate.

`lod` (`memory/column_rates.py`) is how much likelier the slow classes make a column than the
others do, given the columns around it. A segment with a large sum is a conserved stretch. How many
segments of a score arise by chance is counted after the columns have been permuted among the
positions at which the same genomes are present, and the chain of classes has run over them again.
With N(s) segments of score s or more, and N₀(s) the mean over permutations,

    q(s) = min over s' ≤ s of (N₀(s') + 1 / permutations) / N(s')

A base at which no genome is present ends a segment.

A maximal scoring segment (Karlin and Altschul 1990) begins at the first positive score, and ends
where its sum was largest, once the sum has fallen by `drop` from there, or to 0, or a score is NaN.
The next begins behind that end.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.io.big_bed import BedRow
from genodiff.kernels.library import call, is_loaded
from genodiff.memory.column_rates import ColumnClasses, Columns
from genodiff.memory.tables import Floats
from genodiff.memory.text import NONE

DROP = 4.0
"""Nats by which the sum may fall inside an element."""
_ENOUGH, _MOST_PERMUTATIONS = 4_000_000, 64
"""Bases to permute in all, and the most permutations."""
_GAP = -1

Ids = NDArray[np.int32]


class Element(NamedTuple):
    """A conserved element contig[start:end]; `lod` in nats, `q` its false discovery rate."""

    contig: str
    start: int
    end: int
    lod: float
    q: float


class ColumnStretch(NamedTuple):
    """An interval of a contig, and `ids` (n,): which of the distinct columns each base has."""

    contig: str
    start: int
    ids: Ids


def find_elements(
    stretches: Sequence[ColumnStretch],
    columns: Columns,
    classes: ColumnClasses,
    *,
    fdr: float,
    seed: int = 1,
) -> list[Element]:
    """Find the elements of all stretches with q ≤ `fdr`, in the order of the stretches.

    `columns` (U, 1 + G) are the distinct ones, and `classes` knows them. The null distribution is
    that of all stretches together. Nothing is found without a value.
    """
    if not stretches:
        return []
    ids = join_stretches([one.ids for one in stretches])
    found = find_segments(score_columns(ids, columns, classes), DROP)
    q = estimate_fdr(found.score, permute_scores(ids, columns, classes, seed))
    starts = np.cumsum([0, *(len(one.ids) + 1 for one in stretches)])
    of = np.searchsorted(starts, found.start, "right") - 1
    elements = []
    for i in np.flatnonzero(q <= fdr).tolist():
        one = stretches[of[i]]
        at = one.start - int(starts[of[i]])
        start, end = int(found.start[i]) + at, int(found.end[i]) + at
        elements.append(Element(one.contig, start, end, float(found.score[i]), float(q[i])))
    return elements


def join_stretches(parts: Sequence[Ids]) -> Ids:
    """All parts, each followed by a gap, so that no segment runs from one into the next."""
    return np.concatenate([x for one in parts for x in (one, [_GAP])]).astype(np.int32)


def score_columns(ids: Ids, columns: Columns, classes: ColumnClasses) -> Floats:
    """(n,): the lods of a row; NaN in gaps and where no genome is present."""
    lods = classes.compare(ids)
    lods[~(list_patterns(columns) > 0)[ids]] = np.nan
    return lods


def list_patterns(columns: Columns) -> NDArray[np.int64]:
    """(U + 1,): which genomes are present in each column, as bits; of a gap, which is last, -1.

    A column whose target has no base has none.
    """
    bits = np.int64(1) << np.arange(columns.shape[1] - 1) % 62
    there = (columns[:, 1:] < NONE) & (columns[:, :1] < NONE)
    return np.append((there * bits).sum(1), -1)


def permute_scores(ids: Ids, columns: Columns, classes: ColumnClasses, seed: int) -> list[Floats]:
    """The scores of segments in each permutation of `ids` among positions of one pattern."""
    pattern = list_patterns(columns)[ids]
    rounds = int(np.clip(_ENOUGH // max(int((pattern > 0).sum()), 1), 1, _MOST_PERMUTATIONS))
    groups = [np.flatnonzero(pattern == one) for one in np.unique(pattern[pattern > 0])]
    rng = np.random.Generator(np.random.PCG64(seed))
    scores = []
    for _ in range(rounds):
        moved = ids.copy()
        for group in groups:
            moved[group] = ids[rng.permutation(group)]
        scores.append(find_segments(score_columns(moved, columns, classes), DROP).score)
    return scores


def estimate_fdr(scores: Floats, null: Sequence[Floats]) -> Floats:
    """q of each of `scores`; `null` are those of permutations."""
    order = np.argsort(-scores, kind="stable")
    chance = np.sort(np.concatenate(null))
    above = len(chance) - np.searchsorted(chance, scores[order], "left")
    # Equal scores count together, so that q depends on the score alone.
    n = len(scores) - np.searchsorted(np.sort(scores), scores[order], "left")
    ratio = (above / len(null) + 1 / len(null)) / np.maximum(n, 1)
    q = np.empty(len(scores))
    q[order] = np.minimum(np.minimum.accumulate(ratio[::-1])[::-1], 1)
    return q


class Segments(NamedTuple):
    """`start` and `end` (N,), half-open, and `score` (N,), their sums."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    score: Floats


def find_segments(scores: Floats, drop: float) -> Segments:
    """Find the segments of `scores` (n,), in C where there is a library.

    >>> find_segments(np.array([1.0, -0.5, 1.0, -3.0, 2.0]), 2.0).end.tolist()
    [3, 5]
    """
    if not is_loaded():
        return find_segments_slowly(scores, drop)
    scores = np.ascontiguousarray(scores, np.float64)
    # Each segment has a positive score of its own.
    most = int((scores > 0).sum())
    ends, sums, count = np.zeros((most, 2), np.int64), np.zeros(most), np.zeros(1, np.int64)
    arrays = {
        "scores": scores, "drop": np.array([drop]), "ends": ends, "sums": sums, "count": count
    }  # fmt: skip
    call("segments", arrays, backward=False, n=len(scores))
    n = int(count[0])
    return Segments(ends[:n, 0], ends[:n, 1], sums[:n])


def find_segments_slowly(scores: Floats, drop: float) -> Segments:
    """Find the segments in Python: the definition."""
    found: list[tuple[int, int, float]] = []
    i = 0
    while i < len(scores):
        if not scores[i] > 0:
            i += 1
            continue
        sums = scores[i]
        best, end = sums, i + 1
        for j in range(i + 1, len(scores)):
            sums += scores[j]
            if sums > best:
                best, end = sums, j + 1
            if not (sums > 0 and sums > best - drop):
                break
        found.append((i, end, float(best)))
        i = end
    start, end_, score = zip(*found, strict=True) if found else ((), (), ())
    return Segments(np.array(start, np.int64), np.array(end_, np.int64), np.array(score, float))


FIELDS = ("string name", "uint score", "char[1] strand", "float lod", "float q")
"""Of a row behind its interval: a score of 0 to 1000, lod in nats."""


def list_rows(elements: Sequence[Element]) -> list[BedRow]:
    """The rows of elements.bed."""
    return [
        BedRow(
            one.contig, one.start, one.end,
            (f"element_{number}", min(1000, round(100 * np.log2(1 + one.lod))), ".",
             f"{one.lod:.3f}", f"{one.q:.3g}"),
        )
        for number, one in enumerate(elements, 1)
    ]  # fmt: skip


def format_bed(elements: Sequence[Element]) -> str:
    """The rows as BED, below a line that names the fields."""
    lines = ["#chrom\tstart\tend\tname\tscore\tstrand\tlod\tq"]
    lines += ["\t".join(map(str, (*row[:3], *row.more))) for row in list_rows(elements)]
    return "\n".join(lines) + "\n"
