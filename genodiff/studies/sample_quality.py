"""Generated DNA beside floors and ceilings: the figures of `genodiff scorecard`.

A set of sequences is measured against real sequence that no model was trained on (the target):

    k-mer distances    Jensen-Shannon, base 2, both strands pooled, k = 3..6
    composition        GC, CpG observed / expected, bases in runs of one letter
    open frames        the longest stop-free stretch of codons of each sequence
    discriminator      how well a classifier tells the set from real sequence (AUROC)
    matches            the longest exact match of each sequence in the train split

The same figures are given of other real sequence (the floor: no generator should be nearer), and of
sequence drawn from Markov models of the train split (what counting words gives). All sets have
equally many sequences of equal length, because a distance grows as a set shrinks. Matches of
held-out real sequence say what is chance or a repeat of the genome, and not memory.

Standard errors are a jackknife over groups of sequences, and do not cover another training seed.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA, SOFT
from genodiff.counter import Purpose, generator
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.store import Store
from genodiff.data.stretches import LETTERS, Codes, encode_bases
from genodiff.errors import DataError
from genodiff.generate.match_index import WORD, MatchIndex
from genodiff.generate.open_frames import measure_open_frames
from genodiff.generate.scorecard import Ids, js_distance, kmer_counts, summary
from genodiff.scoring.lines import MARKOV_ORDER, count_train_words
from genodiff.scoring.markov import Markov, count, fit
from genodiff.studies.discriminator import Auroc, measure_auroc

WORDS = (3, 4, 5, 6)
ORDERS = (1, 5, 8)
LONG_RUN = 6
LONG_MATCH = 20
MOST_INDEXED = 1 << 26
"""Bases of a train split in which matches are looked up; each takes 50 bytes."""

_GROUPS = 20  # of a jackknife
_CHUNK = 1 << 24  # bases that are read at a time; a match over its edge is seen in two parts

Floats = NDArray[np.float64]


class RealSequence(NamedTuple):
    """What generated sequence is measured against, all of one length."""

    target: list[Ids]
    floor: list[Ids]
    markov: dict[str, list[Ids]]
    """Sequence drawn from Markov models of the train split, by name."""
    train: MatchIndex | None
    """None where there is no train split at hand, or where it is too large."""
    bases: int
    """Of the train split."""


def cut_windows(records: Sequence[Ids], length: int) -> list[Ids]:
    """Windows of `length` side by side, without those that hold an N. Case does not matter."""
    found = []
    for ids in records:
        plain = np.asarray(ids) & np.uint8(0xFF ^ SOFT)
        good = np.isin(plain, DNA.targets)
        for start in range(0, len(plain) - length + 1, length):
            if good[start : start + length].all():
                found.append(plain[start : start + length])
    return found


def read_windows(windows: DnaWindows) -> list[Ids]:
    """The bases of all windows, without those that hold an N or are short."""
    starts = windows.flat_start.tolist()
    size = windows.seq_len
    return cut_windows([windows.store.flat[a : a + size] for a in starts], size)


def open_real(
    windows: list[Ids], train: Sequence[Ids], n: int, *, markov: Markov | None = None, seed: int = 1
) -> RealSequence:
    """`n` windows of a target and of a floor, and Markov sequence of as many.

    Every second window belongs to the target, the others to the floor; both are spread evenly. With
    fewer than `n` in either, both have as many as there are. `markov` is counted on `train` where
    it is not given. Raises `DataError` where fewer than two windows of each are left.
    """
    size = min(n, len(windows) // 2)
    if size < 2:
        what = f"held-out real sequence has {len(windows):,} windows without N of this length"
        raise DataError(what, fix="give more of it, or shorter samples")
    length = len(windows[0])
    bases = sum(map(len, train))
    if markov is None and bases:
        markov = fit(count([encode_bases(ids) for ids in train], min(MARKOV_ORDER, 8)))
    drawn = {}
    for order in ORDERS if markov is not None else ():
        assert markov is not None
        codes = markov.sample(size, length, generator(seed, Purpose.BASELINE, order), order)
        drawn[f"Markov {order}"] = _to_ids(codes)
    fits = 0 < bases <= MOST_INDEXED
    return RealSequence(
        _spread(windows[0::2], size),
        _spread(windows[1::2], size),
        drawn,
        MatchIndex(train) if fits else None,
        bases,
    )


def open_real_of_run(
    windows: DnaWindows, n: int, *, seed: int = 1, legacy_caduceus_tiling: bool = False
) -> RealSequence:
    """As `open_real`, of windows of a genome: its train split is what Markov models count."""
    store = windows.store
    counts = count_train_words(store, MARKOV_ORDER, legacy_caduceus_tiling=legacy_caduceus_tiling)
    few = counts.bases // 2 <= MOST_INDEXED
    train = find_stretches(store, "train") if few else []
    real = open_real(read_windows(windows), train, n, markov=fit(counts), seed=seed)
    return real._replace(bases=counts.bases // 2)


def find_stretches(store: Store, split: str) -> list[Ids]:
    """The stretches of a split between N that have 32 bases or more."""
    intervals = store.intervals_of(split)
    start = store.offsets[intervals.contig] + intervals.start
    end = store.offsets[intervals.contig] + intervals.end
    found = []
    for a, b in zip(start.tolist(), end.tolist(), strict=True):
        for at in range(a, b, _CHUNK):
            part = np.asarray(store.flat[at : min(at + _CHUNK, b)])
            edges = np.flatnonzero(np.diff(encode_bases(part) < len(LETTERS), prepend=0, append=0))
            pairs = zip(edges[0::2].tolist(), edges[1::2].tolist(), strict=True)
            found += [part[i:j] for i, j in pairs if j - i >= WORD]
    return found


def measure_quality(
    sequences: Sequence[Ids],
    real: RealSequence,
    *,
    discriminators: Sequence[str] = ("kmers",),
    seed: int = 1,
) -> dict[str, Any]:
    """All figures of one set against `real.target`, as plain values.

    As many sequences are taken as the target has. An AUROC is None where there are too few.
    """
    chosen = list(sequences[: len(real.target)])
    found = summary(chosen)
    runs = np.array(found.homopolymers)
    frames = measure_open_frames(chosen).astype(np.float64)
    auroc = {}
    for by in discriminators:
        area = measure_auroc(_to_bytes(chosen), _to_bytes(real.target), by=by, seed=seed)
        auroc[by] = None if area is None else _describe_area(area)
    return {
        "sequences": found.n,
        "bases": found.bases,
        "js": {str(k): measure_distance(chosen, real.target, k) for k in WORDS},
        "gc": found.gc_mean,
        "gc_sd": float(np.nanstd(found.gc)),
        "cpg": found.cpg,
        "long_runs": float(runs[LONG_RUN - 1 :].sum()),
        "open_frame": _describe_mean(frames),
        "auroc": auroc,
        "match": None if real.train is None else _describe_matches(chosen, real.train),
        "duplicates": len(chosen) - len({np.asarray(ids).tobytes() for ids in chosen}),
    }


def measure_references(
    real: RealSequence, *, discriminators: Sequence[str] = ("kmers",), seed: int = 1
) -> dict[str, dict[str, Any]]:
    """The figures of other real sequence (the floor) and of Markov sequence, by name."""
    sets: Mapping[str, list[Ids]] = {"real": real.floor, **real.markov}
    how: dict[str, Any] = {"discriminators": discriminators, "seed": seed}
    return {name: measure_quality(part, real, **how) for name, part in sets.items()}


def measure_distance(sequences: Sequence[Ids], target: Sequence[Ids], k: int) -> dict[str, Any]:
    """The Jensen-Shannon distance of k-mers, with a jackknife's standard error.

    Groups of both sets are left out together, so the error covers both.
    """
    mine, theirs = (_count_groups(part, k) for part in (sequences, target))
    value = js_distance(mine.sum(0), theirs.sum(0))
    groups = len(mine)
    if groups < 2 or len(theirs) != groups:
        return {"value": value, "se": None}
    one, other = mine.sum(0), theirs.sum(0)
    without = np.array([js_distance(one - mine[g], other - theirs[g]) for g in range(groups)])
    spread = float(np.square(without - without.mean()).sum())
    return {"value": value, "se": math.sqrt((groups - 1) / groups * spread)}


def _count_groups(sequences: Sequence[Ids], k: int) -> Floats:
    """(groups, 4^k) counts; neighbours share a group."""
    groups = min(_GROUPS, len(sequences) // 2)
    if groups < 2:
        return kmer_counts(sequences, k)[None]
    edges = np.linspace(0, len(sequences), groups + 1).astype(int)
    parts = [sequences[a:b] for a, b in pairwise(edges.tolist())]
    return np.stack([kmer_counts(part, k) for part in parts])


def _describe_area(area: Auroc) -> dict[str, Any]:
    return {"value": area.value, "se": area.se, "ci95": list(area.ci95)}


def _describe_mean(values: Floats) -> dict[str, Any]:
    se = float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
    return {"mean": float(values.mean()), "se": se, "p95": float(np.quantile(values, 0.95))}


def _describe_matches(sequences: Sequence[Ids], train: MatchIndex) -> dict[str, Any]:
    longest = train.measure_longest(sequences)
    return {
        "median": float(np.median(longest)),
        "p99": float(np.quantile(longest, 0.99)),
        "max": int(longest.max()),
        "long": float((longest >= LONG_MATCH).mean()),
    }


def _spread(windows: list[Ids], n: int) -> list[Ids]:
    return [windows[i] for i in np.linspace(0, len(windows) - 1, n).round().astype(int).tolist()]


def _to_ids(codes: Codes) -> list[Ids]:
    return [DNA.encode(LETTERS[row].tobytes()) for row in codes]


def _to_bytes(sequences: Sequence[Ids]) -> list[bytes]:
    return [
        DNA.decode(np.asarray(ids) & np.uint8(0xFF ^ SOFT)).encode("ascii") for ids in sequences
    ]
