"""What samples are compared with: held-out real sequence, Markov sequence, the toy's source.

Everything comes from the run's own recipe and files, as far as they are on this machine. The k-mer
counts of the train split are the ones that the evaluation made.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA, SOFT
from genodiff.counter import Purpose, generator
from genodiff.data.dna_store import DnaStore, build_dna_store
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.kmers import measure_shared_cover, shared_kmers
from genodiff.data.recipe import SPLITS, Recipe
from genodiff.data.stretches import LETTERS, encode_bases, split_stretches
from genodiff.data.toy import ToySource
from genodiff.domain import TEXT
from genodiff.errors import DataError, GenodiffError
from genodiff.evaluation.lines import MARKOV_ORDER, count_train_words
from genodiff.evaluation.markov import fit
from genodiff.reports.comparison import Comparison, Ids, compare_sequences
from genodiff.reports.folder import RunParts
from genodiff.runs.config import RunConfig
from genodiff.runs.feed import find_recipe

MOST_REAL = 512  # windows
MOST_LENGTH = 1 << 14  # bases of each, and of each Markov sequence
MOST_COPIED = (
    1 << 27
)  # bases of a train split in which copies are looked for: beyond, it takes a minute or more
ORDER = 5  # of the Markov sequence where no evaluation says which order is best


class ReferenceData(NamedTuple):
    """The data of a run, open for reading."""

    recipe: Recipe
    store: DnaStore
    config: RunConfig

    def windows(self) -> list[tuple[str, str]]:
        """Of each split, how many windows it has and what was left out of it."""
        found = []
        for split in SPLITS:
            try:
                found.append((split, self._windows(split, self.config.data.seq_len).summary()))
            except GenodiffError as fault:
                found.append((split, fault.what))
        return found

    def comparison(self, folder: RunParts) -> Comparison | None:
        """The run's samples beside real and Markov sequence.

        It is None without samples, or with fewer than two real windows.
        """
        samples = [DNA.encode(s.sequence) for s in folder.samples or [] if s.sequence]
        if not samples:
            return None
        evaluation = folder.evaluation
        split = (
            evaluation.split if evaluation is not None and evaluation.split in SPLITS else "test"
        )
        length = min(int(np.median([len(s) for s in samples])), MOST_LENGTH)
        try:
            tiles = self._windows(split, length).spread(MOST_REAL)
        except DataError:  # the samples are longer than every held-out interval
            tiles = self._windows(split, self.config.data.seq_len).spread(MOST_REAL)
        if len(tiles) < 2:
            return None
        real = [
            _plain(self.store.flat[a : a + n])
            for a, n in zip(tiles.flat_start, tiles.length, strict=True)
        ]
        lines = (
            {k: b for k, b in evaluation.markov().items() if k > 0}
            if evaluation is not None
            else {}
        )
        order = min(lines, key=lambda k: lines[k], default=ORDER)
        markov = fit(
            count_train_words(self.store, MARKOV_ORDER, legacy_caduceus_tiling=tiles.legacy)
        )
        drawn = markov.sample(
            len(samples), length, generator(self.config.seed, Purpose.BASELINE), order
        )
        toy = self.recipe.generator == "toy" and self.store.source.path is None
        return compare_sequences(
            samples,
            real,
            [DNA.encode(LETTERS[row].tobytes()) for row in drawn],
            markov_name=f"Markov {order}",
            source_bits=measure_source_bits if toy else None,
            copied=None
            if toy or self.store.splits.intervals["train"].n_bases > MOST_COPIED
            else self._copied,
        )

    def _copied(self, sequences: Sequence[Ids]) -> float:
        """The share of the bases of `sequences` in 24-mers that train has too, on either strand."""
        codes = [encode_bases(ids) for ids in sequences]
        train = split_stretches(
            self.store, "train", legacy_caduceus_tiling=self.config.data.legacy_caduceus_tiling
        )
        share = measure_shared_cover(codes, shared_kmers(codes, train))
        return float(np.average(share, weights=[max(len(c), 1) for c in codes]))

    def _windows(self, split: str, length: int) -> DnaWindows:
        legacy = self.config.data.legacy_caduceus_tiling
        return DnaWindows(self.store, self.recipe, split, length, legacy_caduceus_tiling=legacy)


def open_reference(folder: RunParts, *, offline: bool = True) -> tuple[ReferenceData | None, str]:
    """The data of the run in `folder`, or None and the reason in words."""
    if folder.settings is None:
        return (
            None,
            "The samples are not compared with real sequence: the run's configuration "
            "cannot be read.",
        )
    config = folder.settings
    if config.domain == TEXT.name:
        return None, ""
    try:
        recipe = find_recipe(config)
        fasta = None if config.fasta is None else Path(config.fasta)
        return ReferenceData(recipe, build_dna_store(recipe, fasta, offline=offline), config), ""
    except (GenodiffError, OSError) as fault:
        return (
            None,
            f"The samples are not compared with real sequence, which is not at hand: {fault}",
        )


def measure_source_bits(sequences: Sequence[Ids]) -> float:
    """Bits per base of a set under the toy's true source, each sequence a fresh draw."""
    toy = ToySource()
    longest = max(len(s) for s in sequences)
    rows = np.full((len(sequences), longest), DNA.pad_id, np.uint8)
    for row, ids in zip(rows, sequences, strict=True):
        row[: len(ids)] = ids
    return toy.bits_per_base(rows)


def _plain(stored: NDArray[np.uint8]) -> Ids:
    return np.asarray(stored) & np.uint8(0xFF ^ SOFT)
