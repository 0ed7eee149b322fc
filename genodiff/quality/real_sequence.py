"""What generated sequence is measured against: held-out real sequence, and Markov sequence.

Real sequence that no model was trained on gives a target and a floor, of equally many windows of
equal length: a distance grows as a set shrinks. Every second window belongs to the floor, so both
are of the same regions.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from genodiff.alphabet import DNA, LETTERS, SOFT, encode_bases
from genodiff.counter import Purpose, generator
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.store import Store
from genodiff.errors import DataError
from genodiff.evaluation.lines import MARKOV_ORDER, count_train_words
from genodiff.evaluation.markov import Markov, count, fit
from genodiff.quality.match_index import WORD, TrainText
from genodiff.quality.scorecard import Ids

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


class TrainSplit(NamedTuple):
    """What is known of a train split: a text to search, a Markov model, and its bases."""

    text: TrainText | None = None
    markov: Markov | None = None
    bases: int = 0


def open_real(
    windows: Iterable[Ids], n: int, train: TrainSplit = TrainSplit(), *, seed: int = 1
) -> RealSequence:
    """`n` windows of a target and of a floor, and Markov sequence of as many.

    With fewer than 2 n windows, both have as many as there are. Without a Markov model of `train`
    there is no Markov sequence. Raises `DataError` where fewer than two windows of each are left.
    """
    drawn, total = draw_some(windows, 2 * max(2, n), seed)
    size = len(drawn) // 2
    if size < 2:
        what = f"held-out real sequence has {total:,} windows without N of this length"
        raise DataError(what, fix="give more of it, or shorter samples")
    length, sets = len(drawn[0]), {}
    for order in ORDERS if train.markov is not None else ():
        assert train.markov is not None
        codes = train.markov.sample(size, length, generator(seed, Purpose.BASELINE, order), order)
        sets[f"Markov {order}"] = [DNA.encode(LETTERS[row].tobytes()) for row in codes]
    target, floor = drawn[0 : 2 * size : 2], drawn[1 : 2 * size : 2]
    return RealSequence(target, floor, sets, train.text, train.bases)


def open_real_of_run(windows: DnaWindows, n: int, *, seed: int = 1) -> RealSequence:
    """As `open_real`, of windows of a genome: its train split is what Markov models count."""
    size = windows.seq_len
    records = (windows.store.flat[a : a + size] for a in windows.flat_start.tolist())
    return open_real(cut_windows(records, size), n, open_split(windows), seed=seed)


def read_train(read: Callable[[], Iterable[Ids]]) -> TrainSplit:
    """What is known of a train split that `read` gives anew each time."""
    counts = count((encode_bases(ids) for ids in read()), MARKOV_ORDER)
    return TrainSplit(TrainText(read), fit(counts), counts.bases // 2)


def open_split(windows: DnaWindows) -> TrainSplit:
    """What is known of the train split of a run; a large one is not searched."""
    store = windows.store
    counts = count_train_words(store, MARKOV_ORDER, legacy_caduceus_tiling=windows.legacy)
    bases = counts.bases // 2
    text = TrainText(lambda: find_stretches(store, "train")) if bases <= MOST_SEARCHED else None
    return TrainSplit(text, fit(counts), bases)


def find_stretches(store: Store, split: str) -> Iterator[Ids]:
    """The stretches of a split between N that have 32 bases or more."""
    intervals = store.intervals_of(split)
    start = store.offsets[intervals.contig] + intervals.start
    end = store.offsets[intervals.contig] + intervals.end
    spans = zip(start.tolist(), end.tolist(), strict=True)
    for first, last in ((at, b) for a, b in spans for at in range(a, b, _CHUNK)):
        part = np.asarray(store.flat[first : min(first + _CHUNK, last)])
        edges = np.flatnonzero(np.diff(encode_bases(part) < len(LETTERS), prepend=0, append=0))
        for i, j in zip(edges[0::2].tolist(), edges[1::2].tolist(), strict=True):
            if j - i >= WORD:
                yield part[i:j]


def choose_evenly(windows: Sequence[Ids], n: int) -> list[Ids]:
    """`n` of the windows, evenly spread."""
    return [windows[i] for i in np.linspace(0, len(windows) - 1, n).round().astype(int).tolist()]
