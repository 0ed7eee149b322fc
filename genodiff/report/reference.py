"""What samples are compared with: held-out real sequence, a Markov model of the train split, on the toy the source.

Everything comes from the run's own recipe and files, as far as they are on this machine. A large train split is
represented by pieces spread over it.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA, SOFT
from genodiff.counter import Purpose, generator
from genodiff.data.store import Store, build_store
from genodiff.data.toy import ToySource
from genodiff.data.windows import Windows
from genodiff.errors import GenodiffError
from genodiff.report.compare import Comparison, Ids, compare_sequences
from genodiff.report.folder import Folder
from genodiff.score.markov import LETTERS, count, fit
from genodiff.train.config import RunConfig
from genodiff.train.feed import recipe_of

MOST_REAL = 512  # windows
MOST_COUNTED = 1 << 25  # bases of the train split that the Markov model is counted on: a second per 16 Mb
MOST_COPIED = 1 << 22  # bases of a train split in which copies are looked for: it takes a minute per 16 Mb
ORDER = 5  # of the Markov sequence where no evaluation says which order is best
_PIECE = 1 << 20
_CODES = np.full(256, 4, np.uint8)
_CODES[list(DNA.targets)] = range(4)


def compare(folder: Folder, *, offline: bool = True) -> tuple[Comparison | None, str]:
    """The run's samples beside real and Markov sequence; where that cannot be, None and why, in words."""
    if not folder.samples:
        return None, ""
    if folder.settings is None:
        return None, "The samples are not compared with real sequence: the run's configuration cannot be read."
    try:
        return _compare(folder, folder.settings, offline), ""
    except (GenodiffError, OSError) as fault:
        return None, f"The samples are not compared with real sequence, which is not at hand: {fault}"


def _compare(folder: Folder, config: RunConfig, offline: bool) -> Comparison:
    samples = [DNA.encode(s.sequence) for s in folder.samples or []]
    recipe = recipe_of(config)
    store = build_store(recipe, None if config.fasta is None else Path(config.fasta), offline=offline)
    length = min(int(np.median([len(s) for s in samples])), 1 << 16)
    split = (
        folder.evaluation.split
        if folder.evaluation is not None and folder.evaluation.split in store.splits.intervals
        else "test"
    )
    windows = Windows(store, recipe, split, max(length, 8), max_n_fraction=recipe.max_n_fraction).spread(MOST_REAL)
    real = [_plain(store.flat[start : start + n]) for start, n in zip(windows.flat_start, windows.length, strict=True)]
    train = train_stretches(store, MOST_COUNTED)
    lines = folder.evaluation.markov() if folder.evaluation is not None else {}
    order = min((k for k in lines if k > 0), key=lambda k: lines[k], default=ORDER)
    model = fit(count((_CODES[s] for s in train), order))
    drawn = model.sample(len(samples), length, generator(config.seed, Purpose.BASELINE))
    total = store.splits.intervals["train"].n_bases
    return compare_sequences(
        samples,
        real,
        [_letters(row) for row in drawn],
        markov_name=f"Markov {order}",
        source_bits=source_bits if recipe.generator == "toy" and config.fasta is None else None,
        train=train if total <= MOST_COPIED else None,
    )


def train_stretches(store: Store, most: int) -> list[Ids]:
    """The train split as plain ids, whole where it has at most `most` bases, else evenly spread pieces of it."""
    intervals = store.splits.intervals["train"]
    starts = store.offsets[intervals.contig] + intervals.start
    spans = [
        (int(a), min(int(a) + _PIECE, int(end)))
        for start, end in zip(starts, starts + intervals.end - intervals.start, strict=True)
        for a in range(int(start), int(end), _PIECE)
    ]
    if intervals.n_bases <= most:
        spans = [(int(a), int(b)) for a, b in zip(starts, starts + intervals.end - intervals.start, strict=True)]
    else:
        spans = spans[:: -(-intervals.n_bases // most)]
    return [_plain(store.flat[a:b]) for a, b in spans]


def source_bits(sequences: Sequence[Ids]) -> float:
    """Bits per base of a set under the toy's true source, each sequence a fresh draw."""
    toy = ToySource()
    longest = max(len(s) for s in sequences)
    rows = np.full((len(sequences), longest), DNA.pad_id, np.uint8)
    for row, ids in zip(rows, sequences, strict=True):
        row[: len(ids)] = ids
    return toy.bits_per_base(rows)


def _plain(stored: NDArray[np.uint8]) -> Ids:
    return np.asarray(stored) & np.uint8(0xFF ^ SOFT)


def _letters(codes: NDArray[np.uint8]) -> Ids:
    return DNA.encode(LETTERS[codes].tobytes())
