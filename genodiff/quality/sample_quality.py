"""Generated DNA beside floors and ceilings: the figures of `genodiff scorecard`.

A set of sequences is measured against real sequence that no model was trained on (the target):

    k-mer distances    Jensen-Shannon, base 2, both strands pooled, k = 3..6
    motif content      rank correlation over motifs of how often each stands there
    Frechet distance   of embeddings by a network, taken as normal laws
    composition        GC, CpG observed / expected, bases in runs of one letter
    reading frames     the longest stop-free stretch, the longest gene, the codons of the former
    discriminator      how well a classifier tells the set from real sequence (AUROC)
    matches            the longest exact match of each sequence in the train split, and the share of
                       bases equal to its most similar stretch of train
    diversity          the same within the set, duplicates, and the effective number of sequences

The same figures are given of other real sequence (the floor: no generator should be nearer), and of
sequence drawn from Markov models of the train split (what counting words gives). All sets have
equally many sequences of equal length, because a distance grows as a set shrinks. Matches of
held-out real sequence say what is chance or a repeat of the genome, and not memory.

Standard errors are a jackknife over groups of sequences, and do not cover another training seed.

The Frechet distance of two sets of embeddings, each taken as a normal law (FBD, FID).

    d2  =  |m1 - m2|^2 + tr(S1 + S2 - 2 (S1 S2)^(1/2))

It is never 0 of finite sets, and grows as they shrink: it is read beside that of real against other
real sequence of the same number, never by itself. Sources: Dowson and Landau 1982; Heusel et al.
2017 (FID); Stark et al. 2024 (of DNA).

Reading frames of short sequences: the longest one without a stop, the longest gene, and codons.

Windows are cut anywhere, so an open frame need not begin with ATG, and the ends of a sequence close
it as a stop does. A gene here is ATG, codons, and a stop. Real coding sequence has longer frames
than sequence of the same composition, and uses its codons unevenly: their frequencies in the
longest open frames tell coding sequence from sequence that only has no stops.

The effective number of sequences is the Vendi score: exp of the entropy of the eigenvalues of K / n
with K the cosines of counts of 6-mers, both strands pooled. It is n where no two sequences share a
word, and 1 where all are alike. Source: Friedman and Dieng 2023, arXiv 2210.02410.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr  # type: ignore[import-untyped]

from genodiff.alphabet import DNA, SOFT
from genodiff.io.motifs import Motif
from genodiff.quality.discriminator import measure_auroc
from genodiff.quality.match_index import MatchIndex, TrainMatches
from genodiff.quality.motif_hits import count_motif_hits, measure_background
from genodiff.quality.real_sequence import RealSequence, choose_evenly
from genodiff.quality.scorecard import (
    Ids,
    js_distance,
    kmer_counts,
    read_bases,
    summary,
    turn_bases,
)
from genodiff.statistics.interval import (
    cut_groups,
    describe_mean,
    describe_share,
    jackknife,
    measure_spread,
    sum_groups,
)

Floats = NDArray[np.float64]


def measure_frechet(one: Floats, other: Floats) -> dict[str, Any] | None:
    """The distance d2 of rows (n, D) and (m, D), with a jackknife's standard error over groups.

    None where a set has fewer than two rows: one row has no spread.
    """
    if min(len(one), len(other)) < 2:
        return None
    parts = list(zip(cut_groups(len(one)), cut_groups(len(other)), strict=False))
    without = [
        find_frechet(np.delete(one, a, axis=0), np.delete(other, b, axis=0))
        for a, b in parts
        if len(parts) > 1  # of one group nothing is left
    ]
    se = measure_spread(without) if without else None
    return {"value": find_frechet(one, other), "se": se}


def find_frechet(one: Floats, other: Floats) -> float:
    """The distance d2 of two sets of rows; never below 0. Each has two rows or more."""
    means = [rows.mean(0) for rows in (one, other)]
    laws = [np.atleast_2d(np.cov(rows, rowvar=False)) for rows in (one, other)]
    # The eigenvalues of S1 S2 are those of the symmetric A S2 A with A the root of S1.
    values, vectors = np.linalg.eigh(laws[0])
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    both = np.linalg.eigvalsh(root @ laws[1] @ root)
    shared = np.sqrt(np.maximum(both, 0.0)).sum()
    apart = np.square(means[0] - means[1]).sum()
    return max(0.0, float(apart + np.trace(laws[0]) + np.trace(laws[1]) - 2 * shared))


WORDS = (3, 4, 5, 6)
LONG_RUN = 6
LONG_MATCH = 20
NEAR = 0.8
"""The share of equal bases from which on a sequence counts as a copy of another."""
_MOST = 1000  # sequences of which the effective number is found: its cost grows with the cube

Embed = Callable[[Sequence[Ids]], Floats]
"""The embeddings (n, D) of sequences."""
Tick = Callable[[str], None]


class Measures(NamedTuple):
    """What is measured beyond counting, and how."""

    discriminators: Sequence[str] = ("kmers",)
    motifs: Sequence[Motif] = ()
    embed: Embed | None = None
    seed: int = 1


def measure_sets(
    sets: Mapping[str, Sequence[Ids]],
    real: RealSequence,
    how: Measures = Measures(),
    tick: Tick | None = None,
) -> dict[str, dict[str, Any]]:
    """The figures of each set against `real.target`; a training text is read once for all.

    As many sequences of a set are taken as the target has, evenly spread.
    """
    tick = tick or (lambda text: None)
    taken = [choose_evenly(one, min(len(one), len(real.target))) for one in sets.values()]
    matches: list[TrainMatches | None] = [None] * len(sets)
    if real.train is not None:
        matches = list(real.train.search(taken, tick))
    target = None if how.embed is None else how.embed(real.target)
    found = {}
    for name, chosen, match in zip(sets, taken, matches, strict=True):
        tick(f"measuring {name}")
        found[name] = _measure(chosen, real.target, how)
        found[name]["match"] = None if match is None else _describe_matches(match)
        found[name]["fbd"] = None
        if how.embed is not None and target is not None:
            found[name]["fbd"] = measure_frechet(how.embed(chosen), target)
    return found


def _measure(chosen: list[Ids], target: list[Ids], how: Measures) -> dict[str, Any]:
    found = summary(chosen)
    runs = np.array(found.homopolymers)
    both = _to_bytes(chosen), _to_bytes(target)
    within = MatchIndex(chosen).measure_identity(chosen, skip_own=True)
    motifs = None
    if how.motifs:
        one, other = _count_hits(chosen, target, how.motifs)
        motifs = jackknife(one[:, :-1], other[:, :-1], _correlate)
    return {
        "sequences": found.n,
        "bases": found.bases,
        "js": {str(k): measure_distance(chosen, target, k) for k in WORDS},
        "motifs": motifs,
        "gc": found.gc_mean,
        "gc_sd": float(np.nanstd(found.gc)),
        "cpg": found.cpg,
        "long_runs": float(runs[LONG_RUN - 1 :].sum()),
        "open_frame": describe_mean(measure_open_frames(chosen).astype(np.float64)),
        "gene": describe_mean(measure_genes(chosen).astype(np.float64)),
        "codons": measure_codons(chosen, target),
        "auroc": {by: measure_auroc(*both, by=by, seed=how.seed) for by in how.discriminators},
        "duplicates": count_duplicates(chosen),
        "within": {
            "median": float(np.median(within)),
            **describe_share("near", int((within >= NEAR).sum()), len(within)),
        },
        "effective": measure_effective_number(chosen) / min(len(chosen), _MOST),
    }


def measure_distance(sequences: Sequence[Ids], target: Sequence[Ids], k: int) -> dict[str, Any]:
    """The Jensen-Shannon distance of k-mers, with a jackknife's standard error."""
    count = partial(kmer_counts, k=k)
    return jackknife(sum_groups(sequences, count), sum_groups(target, count), js_distance)


def measure_codons(sequences: Sequence[Ids], target: Sequence[Ids]) -> dict[str, Any]:
    """The Jensen-Shannon distance of the codons of the longest open frames."""

    def count(some: Sequence[Ids]) -> Floats:
        return count_codons(some).sum(0) + 1e-9  # no codon at all is no fault

    return jackknife(sum_groups(sequences, count), sum_groups(target, count), js_distance)


def compare_motifs(
    sequences: Sequence[Ids], target: Sequence[Ids], motifs: Sequence[Motif]
) -> list[dict[str, Any]]:
    """Each motif's hits for 1,000 bases in both, and log2 of their ratio with a standard error.

    Half a hit is added to each side. The surest differences come first.
    """
    one, other = _count_hits(sequences, target, motifs)

    def ratios(mine: Floats, theirs: Floats) -> Floats:
        rate = [(part[:-1] + 0.5) / max(part[-1], 1) for part in (mine, theirs)]
        found: Floats = np.log2(rate[0] / rate[1])
        return found

    a, b = one.sum(0), other.sum(0)
    value = ratios(a, b)
    without = np.stack([ratios(a - x, b - y) for x, y in zip(one, other, strict=False)])
    rows = []
    for i, motif in enumerate(motifs):
        se = measure_spread(without[:, i].tolist()) if len(without) > 1 else None
        rates = {
            name: float(1000 * part[i] / max(part[-1], 1))
            for name, part in (("samples", a), ("real", b))
        }
        ratio = {"log2_ratio": float(value[i]), "se": se}
        rows.append({"id": motif.id, "name": motif.name, **rates, **ratio})
    return sorted(rows, key=lambda row: -abs(row["log2_ratio"]) / (row["se"] or 1e9))


def _count_hits(
    sequences: Sequence[Ids], target: Sequence[Ids], motifs: Sequence[Motif]
) -> tuple[Floats, Floats]:
    """(groups, motifs + 1) hits in both, with bases as the last column; one background for both."""
    background = measure_background(target)
    tables = []
    for part in (sequences, target):
        hits = count_motif_hits(part, motifs, background)
        rows = np.column_stack([hits, [len(ids) for ids in part]]).astype(float)
        tables.append(np.stack([rows[some].sum(0) for some in cut_groups(len(part))]))
    return tables[0], tables[1]


def _correlate(one: Floats, other: Floats) -> float:
    """The rank correlation (Spearman) over motifs of hits in the sequences and in the target."""
    found = spearmanr(one, other).statistic if len(one) > 1 else np.nan
    return float(np.nan_to_num(found))


def _describe_matches(found: TrainMatches) -> dict[str, Any]:
    longest, identity = found
    return {
        "median": float(np.median(longest)),
        "p99": float(np.quantile(longest, 0.99)),
        "max": int(longest.max()),
        **describe_share("long", int((longest >= LONG_MATCH).sum()), len(longest)),
        "identity": float(np.median(identity)),
        **describe_share("near", int((identity >= NEAR).sum()), len(identity)),
    }


def _to_bytes(sequences: Sequence[Ids]) -> list[bytes]:
    return [
        DNA.decode(np.asarray(ids) & np.uint8(0xFF ^ SOFT)).encode("ascii") for ids in sequences
    ]


def _number(word: str) -> int:
    first, second, third = (DNA.targets.index(b) for b in DNA.encode(word))
    return 16 * first + 4 * second + third


STOPS = tuple(_number(word) for word in ("TAA", "TAG", "TGA"))
_START = _number("ATG")
_IS_STOP = np.zeros(64, bool)
_IS_STOP[list(STOPS)] = True

Ints = NDArray[np.int64]


def measure_open_frames(sequences: Sequence[Ids]) -> Ints:
    """The longest open reading frame of each sequence, in codons, over all six frames.

    It is cut by TAA, TAG and TGA, and by every letter that is not A, C, G or T.
    """
    return np.array([len(_find_longest(ids)) for ids in sequences], np.int64)


def count_codons(sequences: Sequence[Ids]) -> Ints:
    """Codons (sequences, 64) of the longest open frame of each sequence, AAA < AAC < ... < TTT."""
    found = np.zeros((len(sequences), 64), np.int64)
    for row, ids in zip(found, sequences, strict=True):
        row += np.bincount(_find_longest(ids), minlength=64)
    return found


def measure_genes(sequences: Sequence[Ids]) -> Ints:
    """The longest ATG ... stop of each sequence over all six frames, in codons without the stop."""
    found = np.zeros(len(sequences), np.int64)
    for i, ids in enumerate(sequences):
        for codons in _read_frames(ids):
            stops = np.flatnonzero(_IS_STOP[codons] & (codons >= 0))
            edges = np.flatnonzero((codons < 0) | (_IS_STOP[codons] & (codons >= 0)))
            starts = np.flatnonzero(codons == _START)
            if not len(stops) or not len(starts):
                continue
            before = np.r_[-1, edges][np.searchsorted(edges, stops)]
            first = np.searchsorted(starts, before, side="right")
            begins = np.r_[starts, len(codons)][first]
            found[i] = max(found[i], int((stops - begins).max()))
    return found


def _read_frames(ids: Ids) -> Iterator[Ints]:
    """The codons of the six frames as numbers, -1 where a letter is none of A, C, G, T."""
    forward = read_bases(ids)
    for strand in (forward, turn_bases(forward)):
        for frame in range(3):
            bases = strand[frame:]
            codons = bases[: len(bases) // 3 * 3].reshape(-1, 3)
            yield np.where((codons >= 0).all(1), codons @ np.array([16, 4, 1]), -1)


def _find_longest(ids: Ids) -> Ints:
    """The codons of the longest open frame; of equal ones the first."""
    best = np.zeros(0, np.int64)
    for codons in _read_frames(ids):
        closed = np.r_[-1, np.flatnonzero((codons < 0) | _IS_STOP[codons]), len(codons)]
        at = int(np.diff(closed).argmax())
        if closed[at + 1] - closed[at] - 1 > len(best):
            best = codons[closed[at] + 1 : closed[at + 1]]
    return best


def count_duplicates(sequences: Sequence[Ids]) -> int:
    """How many sequences stand in the set already, on either strand."""
    plain = [np.asarray(ids) & np.uint8(0xFF ^ SOFT) for ids in sequences]
    return len(plain) - len({min(ids.tobytes(), DNA.rc(ids).tobytes()) for ids in plain})


def measure_effective_number(sequences: Sequence[Ids]) -> float:
    """The effective number of the first `_MOST` sequences, from 1 to their number."""
    rows = np.stack([kmer_counts([ids], WORDS[-1]) for ids in sequences[:_MOST]])
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows / np.maximum(length, 1e-12)
    share = np.linalg.eigvalsh(rows @ rows.T / len(rows))
    share = share[share > 1e-12]
    return float(np.exp(-(share * np.log(share)).sum()))
