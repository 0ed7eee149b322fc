"""Who teaches a network in training: tracks of any model, or related genomes themselves.

Related genomes are read window by window while the network trains. A window that hides nothing
tells each of its bases from all others (`memory/relatives.py`), so one pass gives, with the shares
of bases in the genome as the prior, what `genodiff tracks none --relatives` writes.
"""

from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from genodiff.data.store import Store
from genodiff.data.stretches import encode_bases
from genodiff.data.teacher import FILES, LEAST, TrackTeacher, check_tracks
from genodiff.io.identity import sha256_json
from genodiff.memory.tree import share_bases
from genodiff.runs.known_contigs import StoreLetters
from genodiff.runs.related_genome import relate_genome
from genodiff.runs.related_model import cut_fit_windows
from genodiff.runs.relative_lists import list_genomes
from genodiff.runs.relatives import identify_relatives

PIECE = 4096
"""Bases of a window that are read together."""


class Teacher(Protocol):
    """Distributions over A, C, G and T at the bases of a store; `digest` is of what they are of."""

    digest: str

    def read(
        self, starts: NDArray[np.int64], lengths: NDArray[np.int64], width: int
    ) -> NDArray[np.float32]:
        """(B, width, 4) probabilities of windows of the store, by flat start; 0 where unknown."""
        ...


class RelatedTeacher:
    """What related genomes have over each base of a store, its own base left out."""

    def __init__(self, given: str, store: Store) -> None:
        """`given`: a FASTA file, a list of genomes or a folder of them.

        They are fitted to windows of the valid split, without one of the train split.
        Raises `DataError` as `relate_genome`.
        """
        windows = cut_fit_windows(store)
        if not len(windows):
            windows = cut_fit_windows(store, "train")
        found = relate_genome(StoreLetters(store), [given], windows=windows)
        self.relatives, self.store = found.relatives, store
        self.digest = sha256_json(identify_relatives(found.opened))

    def read(
        self, starts: NDArray[np.int64], lengths: NDArray[np.int64], width: int
    ) -> NDArray[np.float32]:
        """As `Teacher.read`; unknown is a base of which they tell less than `LEAST` bits."""
        found = np.zeros((len(starts), width, 4), np.float32)
        pieces: dict[int, list[tuple[int, int]]] = {}
        for row, length in enumerate(lengths.tolist()):
            for first in range(0, length, PIECE):
                pieces.setdefault(min(PIECE, length - first), []).append((row, first))
        for length, alike in pieces.items():  # read together, each by itself
            told = self._read([int(starts[row]) + first for row, first in alike], length)
            for (row, first), p in zip(alike, told, strict=True):
                found[row, first : first + length] = p
        return found

    def _read(self, starts: list[int], length: int) -> NDArray[np.float64]:
        assert self.relatives.columns is not None
        ids = np.stack([self.store.read_ids(start, start + length) for start in starts])
        prior = np.broadcast_to(share_bases(self.relatives.columns.gc), (*ids.shape, 4))
        p = prior * self.relatives.weigh(encode_bases(ids.astype(np.uint8)), prior)
        p /= p.sum(-1, keepdims=True)
        bits = 2 + (p * np.log2(np.maximum(p, np.finfo(float).tiny))).sum(-1, keepdims=True)
        return np.asarray(np.where(bits >= LEAST, p, 0.0))


def check_teacher(given: str) -> None:
    """Raises `DataError` where `given` is neither tracks nor related genomes."""
    if holds_tracks(given):
        check_tracks(given)
    else:
        list_genomes([given])


def open_teacher(given: str, store: Store) -> Teacher:
    """The teacher for the bases of a store. Raises `DataError`."""
    return TrackTeacher(given, store) if holds_tracks(given) else RelatedTeacher(given, store)


def holds_tracks(given: str) -> bool:
    """Whether a path is a folder with one of the files of a teacher."""
    return any((Path(given) / name).exists() for name in FILES)
