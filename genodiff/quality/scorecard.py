"""How near generated DNA is to real DNA, beside a floor and a baseline.

A set is a sequence of uint8 id arrays as `Alphabet.encode` or the store gives them (the soft-mask
bit is ignored); every id that is not A, C, G or T breaks the words that would hold it. A distance
between two finite sets is never 0, not even between two halves of one genome: hence `scorecard`
gives, for as many bases as the samples have,

    samples ↔ real,    other real sequence ↔ real (the floor),
    order-k Markov sequence ↔ real (the baseline; of `genodiff.evaluation.markov`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import ID_CODES, SOFT
from genodiff.words import pack_words, turn_words

Ids = NDArray[np.uint8]
KMER_SIZES = (1, 2, 3, 4, 5, 6)
_INDEX = np.where(ID_CODES < 4, ID_CODES.astype(np.int8), -1)


class Summary(NamedTuple):
    """One set of sequences in figures."""

    n: int
    bases: int  # A, C, G and T only
    lengths: list[int]
    gc: list[float]  # GC fraction of each sequence
    gc_mean: float  # pooled over all bases
    cpg: float  # CpG observed / expected
    homopolymers: list[float]  # share of bases in runs of 1, 2, …, ≥ 10


class Scorecard(NamedTuple):
    """Samples beside real and Markov sequence.

    Distances are Jensen-Shannon, base 2, in [0, 1], one per word size.
    """

    kmer_sizes: tuple[int, ...]
    samples: Summary
    real: Summary
    markov: Summary | None
    js_samples: list[float]
    js_floor: list[float]
    js_markov: list[float] | None


def read_bases(ids: Ids) -> NDArray[np.int64]:
    """0..3 for A, C, G, T; −1 for all else. Complements add up to 3."""
    return _INDEX[np.asarray(ids) & (0xFF ^ SOFT)].astype(np.int64)


def turn_bases(bases: NDArray[Any]) -> NDArray[Any]:
    """The reverse complement of what `read_bases` gives."""
    return np.where(bases >= 0, 3 - bases, -1)[::-1].astype(bases.dtype)


def kmer_counts(sequences: Sequence[Ids], k: int, both_strands: bool = True) -> NDArray[np.float64]:
    """Counts of the 4^k words of k bases, A < C < G < T.

    With `both_strands`, those of the reverse complements are added.
    """
    counts = np.zeros(4**k)
    for ids in sequences:
        words, whole = pack_words(ID_CODES[np.asarray(ids) & (0xFF ^ SOFT)], k)
        counts += np.bincount(words[whole], minlength=4**k)
    return counts + turn_words(counts) if both_strands else counts


def kmer_spectrum(
    sequences: Sequence[Ids], k: int, both_strands: bool = True
) -> NDArray[np.float64]:
    """Frequencies of the 4^k words (they sum to 1; all 0 where there is no word)."""
    counts = kmer_counts(sequences, k, both_strands)
    total = counts.sum()
    return counts / total if total else counts


def js_distance(p: NDArray[np.float64], q: NDArray[np.float64]) -> float:
    """The Jensen-Shannon distance of two distributions, in [0, 1].

    It is the square root of the divergence, base 2.
    """
    p, q = p / p.sum(), q / q.sum()
    m = (p + q) / 2
    each = [np.sum(side[side > 0] * np.log2(side[side > 0] / m[side > 0])) for side in (p, q)]
    bits = sum(map(float, each)) / 2
    return float(np.sqrt(min(max(bits, 0.0), 1.0)))


def gc_fractions(sequences: Sequence[Ids]) -> NDArray[np.float64]:
    """The share of G and C among the bases of each sequence (NaN where it has none)."""
    found = np.full(len(sequences), np.nan)
    for i, ids in enumerate(sequences):
        index = read_bases(ids)
        bases = int((index >= 0).sum())
        if bases:
            found[i] = float(((index == 1) | (index == 2)).sum()) / bases
    return found


def cpg_ratio(sequences: Sequence[Ids]) -> float:
    """CpG observed / expected, pooled: f(CG) / (f(C) f(G)).

    About 0.2 in mammals, 1 where C and G meet by chance.
    """
    one, two = (kmer_spectrum(sequences, k, both_strands=False) for k in (1, 2))
    expected = one[1] * one[2]
    return float(two[1 * 4 + 2] / expected) if expected else float("nan")


def homopolymer_shares(sequences: Sequence[Ids], longest: int = 10) -> NDArray[np.float64]:
    """The share of bases that lie in runs of one letter of length 1, 2, …, ≥ `longest`."""
    shares = np.zeros(longest)
    for ids in sequences:
        index = read_bases(ids)
        starts = np.flatnonzero(np.diff(index, prepend=-2))
        runs = np.diff(np.r_[starts, len(index)])[index[starts] >= 0]
        shares += np.bincount(np.minimum(runs, longest) - 1, weights=runs, minlength=longest)
    total = shares.sum()
    return shares / total if total else shares


def longest_matches(sequences: Sequence[Ids], reference: Sequence[Ids]) -> NDArray[np.int64]:
    """The longest stretch of each sequence that stands exactly in `reference`, on either strand.

    Copied training data shows as matches far longer than those of held-out real sequence. This is
    the definition, which looks every stretch up; the fast form is `match_index.MatchIndex`.
    """
    sides = [side for ids in reference for side in (read_bases(ids), turn_bases(read_bases(ids)))]
    texts = [side.astype(np.int8).tobytes() for side in sides]
    found = np.zeros(len(sequences), np.int64)
    for i, ids in enumerate(sequences):
        text = read_bases(ids).astype(np.int8).tobytes()
        for start in range(len(text)):
            while (
                len(word := text[start : start + found[i] + 1]) > found[i]
                and b"\xff" not in word
                and any(word in other for other in texts)
            ):
                found[i] += 1
    return found


def summary(sequences: Sequence[Ids]) -> Summary:
    """Lengths, GC, CpG and runs of one set."""
    one = kmer_counts(sequences, 1, both_strands=False)
    bases = int(one.sum())
    return Summary(
        n=len(sequences),
        bases=bases,
        lengths=[len(ids) for ids in sequences],
        gc=[float(x) for x in gc_fractions(sequences)],
        gc_mean=float((one[1] + one[2]) / bases) if bases else float("nan"),
        cpg=cpg_ratio(sequences),
        homopolymers=[float(x) for x in homopolymer_shares(sequences)],
    )


def _cut(sequences: Sequence[Ids], bases: int) -> list[Ids]:
    """The first sequences with `bases` ids in all, the last one shortened."""
    kept: list[Ids] = []
    for ids in sequences:
        if bases <= 0:
            break
        kept.append(ids[:bases])
        bases -= len(kept[-1])
    return kept


def scorecard(
    samples: Sequence[Ids],
    real: Sequence[Ids],
    markov: Sequence[Ids] | None = None,
    kmer_sizes: tuple[int, ...] = KMER_SIZES,
) -> Scorecard:
    """`samples` beside `real` (held-out windows: at least two) and, where given, `markov` sequence.

    Every second window of `real` is the target of all distances; the others, cut to as many bases
    as `samples`, give the floor. `markov` is cut likewise.
    """
    if not samples or len(real) < 2:
        raise ValueError("a scorecard needs samples and at least two real windows")
    target, other = real[0::2], real[1::2]
    size = sum(len(ids) for ids in samples)
    baseline = None if markov is None else _cut(markov, size)

    def distances(sequences: Sequence[Ids]) -> list[float]:
        return [
            js_distance(kmer_spectrum(sequences, k), kmer_spectrum(target, k)) for k in kmer_sizes
        ]

    return Scorecard(
        kmer_sizes=kmer_sizes,
        samples=summary(samples),
        real=summary(real),
        markov=None if baseline is None else summary(baseline),
        js_samples=distances(samples),
        js_floor=distances(_cut(other, size)),
        js_markov=None if baseline is None else distances(baseline),
    )
