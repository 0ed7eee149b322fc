"""What another model says of each base of a genome, from the bigWigs of `genodiff tracks`.

p_A.bw, p_C.bw, p_G.bw and p_T.bw are a distribution at each base. A base without one of them is
unknown, and so is one over which no related genome lies, by relatives.bw where the folder has it.
Files of that form from any other source do as well.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genodiff.data.store import Store
from genodiff.errors import DataError
from genodiff.io.identity import sha256_file, sha256_json
from genodiff.io.value_tracks import SUFFIX, name_faults, open_bigwig

FILES = tuple(f"p_{base}{SUFFIX}" for base in "ACGT")
RELATIVES = f"relatives{SUFFIX}"
LEAST = 0.5
"""Bits that related genomes alone tell of a base, below which it is unknown."""
TOLERANCE = 0.01
"""How far the four probabilities of a base may be from 1 in sum."""


def check_tracks(folder: str | Path) -> None:
    """Raises `DataError` where a file of the folder is missing."""
    for name in FILES:
        if not (Path(folder) / name).is_file():
            fix = "write them with `genodiff tracks MODEL --relatives ... -o FOLDER`"
            raise DataError(f"has no {name}", file=folder, fix=fix)


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
        """A row of each file; NaN where there is no value."""
        found = np.full((len(self._files), end - start), np.nan)
        for row, (file, called) in zip(found, self._files, strict=True):
            if contig in called:
                with name_faults(self.folder):
                    values = file.values(called[contig], start, end, numpy=True)
                row[: len(values)] = values  # none where the file has no value of this contig
        return found
