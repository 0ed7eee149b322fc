"""Conserved elements: maximal scoring segments of `lod`, with a false discovery rate.

`lod` of a column is below 0 on average over the genome's own columns (Gibbs' inequality), so a
segment with a large sum is a cluster of conserved columns. How many segments of a score arise by
chance is counted after the columns have been permuted among the positions at which the same
genomes are present. With N(s) segments of score s or more, and N₀(s) the mean over permutations,

    q(s) = min over s' ≤ s of (N₀(s') + 1 / permutations) / N(s')

A base at which no genome is present ends a segment.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.memory.evidence import Floats
from genodiff.memory.segments import find_segments

DROP = 4.0
"""Nats by which the sum may fall inside an element."""
_ENOUGH, _MOST_PERMUTATIONS = 4_000_000, 64
"""Bases to permute in all, and the most permutations."""


class Element(NamedTuple):
    """A conserved element contig[start:end]; `lod` in nats, `q` its false discovery rate."""

    contig: str
    start: int
    end: int
    lod: float
    q: float


class ScoredStretch(NamedTuple):
    """An interval of a contig with `lod` (n,) and `pattern` (n,): which genomes are present."""

    contig: str
    start: int
    lod: NDArray[np.float32]
    pattern: NDArray[np.int64]


def find_elements(
    stretches: Sequence[ScoredStretch], *, fdr: float, seed: int = 1
) -> list[Element]:
    """Find the elements of all stretches with q ≤ `fdr`, in the order of the stretches.

    The null distribution is that of all stretches together. Nothing is found without a value.

    >>> find_elements([], fdr=0.05)
    []
    """
    if not stretches:
        return []
    lod = join_stretches([one.lod for one in stretches])
    pattern = join_stretches([one.pattern for one in stretches], fill=-1)
    found = find_segments(lod, DROP)
    q = estimate_fdr(found.score, permute_scores(lod, pattern, seed))
    starts = np.cumsum([0, *(len(one.lod) + 1 for one in stretches)])
    of = np.searchsorted(starts, found.start, "right") - 1
    elements = []
    for i in np.flatnonzero(q <= fdr).tolist():
        one = stretches[of[i]]
        at = one.start - int(starts[of[i]])
        start, end = int(found.start[i]) + at, int(found.end[i]) + at
        elements.append(Element(one.contig, start, end, float(found.score[i]), float(q[i])))
    return elements


def join_stretches(parts: Sequence[NDArray[np.generic]], fill: float = np.nan) -> Floats:
    """All parts, each followed by `fill`, so that no segment runs from one into the next."""
    out: list[NDArray[np.generic]] = []
    for one in parts:
        out += [one, np.array([fill])]
    return np.concatenate(out).astype(np.float64)


def permute_scores(lod: Floats, pattern: Floats, seed: int) -> list[Floats]:
    """The scores of segments in each permutation of `lod` among positions of one pattern."""
    known = ~np.isnan(lod)
    rounds = int(np.clip(_ENOUGH // max(int(known.sum()), 1), 1, _MOST_PERMUTATIONS))
    groups = [np.flatnonzero(known & (pattern == one)) for one in np.unique(pattern[known])]
    rng = np.random.Generator(np.random.PCG64(seed))
    scores = []
    for _ in range(rounds):
        moved = np.full(len(lod), np.nan)
        for group in groups:
            moved[group] = lod[rng.permutation(group)]
        scores.append(find_segments(moved, DROP).score)
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


def format_bed(elements: Sequence[Element]) -> str:
    """BED: contig, start, end, name, a score of 0 to 1000, strand, then lod in nats and q."""
    lines = ["#chrom\tstart\tend\tname\tscore\tstrand\tlod\tq\n"]
    for number, one in enumerate(elements, 1):
        score = min(1000, round(100 * np.log2(1 + one.lod)))
        where = f"{one.contig}\t{one.start}\t{one.end}\telement_{number}"
        lines.append(f"{where}\t{score}\t.\t{one.lod:.3f}\t{one.q:.3g}\n")
    return "".join(lines)
