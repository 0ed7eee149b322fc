"""What generated sequence is measured against: held-out real sequence, and Markov sequence.

Real sequence that no model was trained on gives a target and a floor, of equally many windows of
equal length: a distance grows as a set shrinks. Every second window belongs to the floor, so both
are of the same regions.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from genodiff.alphabet import DNA, SOFT
from genodiff.counter import Purpose, generator
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.store import Store
from genodiff.data.stretches import LETTERS, encode_bases
from genodiff.errors import DataError
from genodiff.evaluation.lines import MARKOV_ORDER, count_train_words
from genodiff.evaluation.markov import Markov, count, fit
from genodiff.quality.match_index import WORD
from genodiff.quality.scorecard import Ids
from genodiff.quality.train_text import TrainText

ORDERS = (1, 5, 8)
MOST_SEARCHED = 1 << 28
"""Bases of a run's train split in which matches are looked up: some four minutes."""

_CHUNK = 1 << 24  # bases that are read at a time; a match over its edge is seen in two parts


class RealSequence(NamedTuple):
    """What generated sequence is measured against, all of one length."""

    target: list[Ids]
    floor: list[Ids]
    markov: dict[str, list[Ids]]
    """Sequence drawn from Markov models of the train split, by name."""
    train: TrainText | None
    """None where there is no train split at hand, or where that of a run is too large."""
    bases: int
    """Of the train split."""


def cut_windows(records: Iterable[Ids], length: int) -> Iterator[Ids]:
    """Windows of `length` side by side, without those that hold an N. Case does not matter."""
    for ids in records:
        plain = np.asarray(ids) & np.uint8(0xFF ^ SOFT)
        good = np.isin(plain, DNA.targets)
        for start in range(0, len(plain) - length + 1, length):
            if good[start : start + length].all():
                yield plain[start : start + length]


def read_windows(windows: DnaWindows) -> Iterator[Ids]:
    """The bases of all windows, without those that hold an N or are short."""
    size = windows.seq_len
    return cut_windows(
        (windows.store.flat[a : a + size] for a in windows.flat_start.tolist()), size
    )


def draw_some(given: Iterable[Any], most: int, seed: int) -> tuple[list[Any], int]:
    """At most `most` of what is given, each as likely, in order; and how many there were.

    One pass, and no more than `most` are held (Vitter 1985, algorithm R).
    """
    draws = generator(seed, Purpose.BOOTSTRAP, most)
    held: list[tuple[int, Any]] = []
    total = 0
    for one in given:
        if total < most:
            held.append((total, one))
        elif (place := int(draws.integers(total + 1))) < most:
            held[place] = (total, one)
        total += 1
    return [one for _, one in sorted(held, key=lambda pair: pair[0])], total


def open_real(
    windows: Iterable[Ids],
    train: TrainText | None,
    n: int,
    *,
    markov: Markov | None = None,
    bases: int = 0,
    seed: int = 1,
) -> RealSequence:
    """`n` windows of a target and of a floor, and Markov sequence of as many.

    With fewer than 2 n windows, both have as many as there are. Without `markov` there is no Markov
    sequence. Raises `DataError` where fewer than two windows of each are left.
    """
    drawn, total = draw_some(windows, 2 * max(2, n), seed)
    size = len(drawn) // 2
    if size < 2:
        what = f"held-out real sequence has {total:,} windows without N of this length"
        raise DataError(what, fix="give more of it, or shorter samples")
    length, sets = len(drawn[0]), {}
    for order in ORDERS if markov is not None else ():
        assert markov is not None
        codes = markov.sample(size, length, generator(seed, Purpose.BASELINE, order), order)
        sets[f"Markov {order}"] = [DNA.encode(LETTERS[row].tobytes()) for row in codes]
    return RealSequence(drawn[0 : 2 * size : 2], drawn[1 : 2 * size : 2], sets, train, bases)


def count_markov(texts: Iterable[Ids]) -> tuple[Markov, int]:
    """A Markov model of the texts, which are read one by one, and their bases A, C, G and T."""
    counts = count((encode_bases(ids) for ids in texts), MARKOV_ORDER)
    return fit(counts), counts.bases // 2


def open_real_of_run(
    windows: DnaWindows, n: int, *, seed: int = 1, legacy_caduceus_tiling: bool = False
) -> RealSequence:
    """As `open_real`, of windows of a genome: its train split is what Markov models count."""
    train, markov, bases = open_train(windows.store, legacy_caduceus_tiling)
    return open_real(read_windows(windows), train, n, markov=markov, bases=bases, seed=seed)


def open_train(
    store: Store, legacy_caduceus_tiling: bool = False
) -> tuple[TrainText | None, Markov, int]:
    """A run's train split as a text to search, its Markov model, and its bases."""
    counts = count_train_words(store, MARKOV_ORDER, legacy_caduceus_tiling=legacy_caduceus_tiling)
    bases = counts.bases // 2
    few = bases <= MOST_SEARCHED
    train = TrainText(lambda: find_stretches(store, "train")) if few else None
    return train, fit(counts), bases


def find_stretches(store: Store, split: str) -> Iterator[Ids]:
    """The stretches of a split between N that have 32 bases or more."""
    intervals = store.intervals_of(split)
    start = store.offsets[intervals.contig] + intervals.start
    end = store.offsets[intervals.contig] + intervals.end
    pieces = chain.from_iterable(
        ((at, min(at + _CHUNK, b)) for at in range(a, b, _CHUNK))
        for a, b in zip(start.tolist(), end.tolist(), strict=True)
    )
    for first, last in pieces:
        part = np.asarray(store.flat[first:last])
        edges = np.flatnonzero(np.diff(encode_bases(part) < len(LETTERS), prepend=0, append=0))
        for i, j in zip(edges[0::2].tolist(), edges[1::2].tolist(), strict=True):
            if j - i >= WORD:
                yield part[i:j]


def choose_evenly(windows: Sequence[Ids], n: int) -> list[Ids]:
    """`n` of the windows, evenly spread."""
    return [windows[i] for i in np.linspace(0, len(windows) - 1, n).round().astype(int).tolist()]
