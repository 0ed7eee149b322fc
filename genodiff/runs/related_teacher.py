"""Who teaches a network in training: tracks of any model, or related genomes themselves.

Related genomes are read window by window while the network trains. A window that hides nothing
tells each of its bases from all others (`memory/relatives.py`), so one pass gives, with the shares
of bases in the genome as the prior, what `genodiff tracks none --relatives` writes.

Of the bigWigs of `genodiff tracks`, p_A.bw, p_C.bw, p_G.bw and p_T.bw are a distribution at each
base. A base without one of them is unknown, and so is one over which no related genome lies, by
relatives.bw where the folder has it. Files of that form from any other source do as well.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import encode_bases
from genodiff.data.store import Store
from genodiff.errors import DataError
from genodiff.io.file_kinds import sha256_file, sha256_json
from genodiff.io.value_tracks import SUFFIX, name_faults, open_bigwig
from genodiff.memory.tree import share_bases
from genodiff.runs.known_contigs import StoreLetters
from genodiff.runs.related_genome import relate_genome
from genodiff.runs.related_model import cut_fit_windows
from genodiff.runs.relative_lists import list_genomes
from genodiff.runs.relatives import identify_relatives

FILES = tuple(f"p_{base}{SUFFIX}" for base in "ACGT")
RELATIVES = f"relatives{SUFFIX}"
LEAST = 0.5
"""Bits that related genomes alone tell of a base, below which it is unknown."""
TOLERANCE = 0.01
"""How far the four probabilities of a base may be from 1 in sum."""
PIECE = 4096
"""Bases of a window that are read together."""


class TrackTeacher:
    """Distributions over A, C, G and T at the bases of a store."""

    def __init__(self, folder: str | Path, store: Store) -> None:
        """Raises `DataError` for missing files and for those of another genome."""
        check_tracks(folder)
        self.folder = Path(folder)
        names = [*FILES, *([RELATIVES] if (self.folder / RELATIVES).is_file() else [])]
        self.digest = sha256_json([sha256_file(self.folder / name) for name in names])
        self.store = store
        lengths = dict(zip(store.names, store.lengths.tolist(), strict=True))
        self._files = [open_bigwig(self.folder / name, lengths) for name in names]

    def read(
        self, starts: NDArray[np.int64], lengths: NDArray[np.int64], width: int
    ) -> NDArray[np.float32]:
        """(B, width, 4) probabilities of windows of the store, by flat start; 0 where unknown.

        Raises `DataError` where the four of a base do not sum to 1.
        """
        found = np.zeros((len(starts), width, 4), np.float32)
        which = self.store.find_contigs(starts)
        for row, (start, length, at) in enumerate(zip(starts, lengths, which, strict=True)):
            first, contig = int(start - self.store.offsets[at]), self.store.names[at]
            values = self._values(contig, first, first + int(length))
            known = np.isfinite(values).all(0)
            if len(values) > len(FILES):
                known &= values[-1] >= LEAST
            p = np.where(known, values[: len(FILES)], 0.0)
            total = p.sum(0)
            wrong = known & ((np.abs(total - 1) > TOLERANCE) | (p.min(0) < 0))
            if wrong.any():
                base = first + int(wrong.argmax()) + 1
                what = f"{contig}:{base:,}: the four probabilities are no distribution"
                raise DataError(what, file=self.folder, fix="make the tracks again")
            found[row, : int(length)] = (p / np.where(known, total, 1.0)).T
        return found

    def _values(self, contig: str, start: int, end: int) -> NDArray[np.float64]:
        found = np.full((len(self._files), end - start), np.nan)
        for row, (file, called) in zip(found, self._files, strict=True):
            if contig in called:
                with name_faults(self.folder):
                    values = file.values(called[contig], start, end, numpy=True)
                row[: len(values)] = values  # none where the file has no value of this contig
        return found


class RelatedTeacher:
    """What related genomes have over each base of a store, its own base left out."""

    def __init__(self, given: str, store: Store) -> None:
        """`given` is fitted to windows of the valid split, or of train. Raises `DataError`."""
        windows = cut_fit_windows(store)
        if not len(windows):
            windows = cut_fit_windows(store, "train")
        found = relate_genome(StoreLetters(store), [given], windows=windows)
        self.relatives, self.store = found.relatives, store
        self.digest = sha256_json(identify_relatives(found.opened))

    def read(
        self, starts: NDArray[np.int64], lengths: NDArray[np.int64], width: int
    ) -> NDArray[np.float32]:
        """As `TrackTeacher.read`; unknown is a base of which they tell less than `LEAST` bits."""
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


Teacher = TrackTeacher | RelatedTeacher
"""Distributions over A, C, G and T at the bases of a store; `digest` is of what they are of."""


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


def check_tracks(folder: str | Path) -> None:
    """Raises `DataError` where a file of the folder is missing."""
    for name in FILES:
        if not (Path(folder) / name).is_file():
            fix = "write them with `genodiff tracks MODEL --relatives ... -o FOLDER`"
            raise DataError(f"has no {name}", file=folder, fix=fix)
