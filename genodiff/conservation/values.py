"""The tracks of constraint: what each is, its unit, and how a browser shows it."""

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.maps.track_values import BaseTracks, Track, TrackKind, TrackKinds

VALUES = ("rs", "phylop", "conserved", "rate", "coverage", "length")
"""The tracks, in the order of an entry's columns."""
COLUMNS = len(VALUES)
FEW_VALUES = 24
"""Of `rs`: a base that few genomes cover has no more, and a reader is told."""

_KINDS = {
    "rs": ("Rejected substitutions (GERP's scale)", (-1, 1), "180,83,11"),
    "phylop": ("phyloP's scale: -log10 p, positive where conserved", (-3, 2), "11,99,176"),
    "conserved": ("Probability of conservation (phastCons' scale)", (0, 1), "26,127,55"),
    "rate": ("Posterior mean of the substitution rate; 1 is neutral", (0, 3), "92,102,112"),
    "coverage": ("Related genomes present at the base", (0, 5), "64,110,60"),
    "length": ("Tree length of those present, substitutions per neutral site", (0, 2), "64,110,60"),
}


def _take(name: str, one: BaseTracks) -> Track:
    return one.related[name]


def list_constraint_kinds(genomes: int = 5) -> TrackKinds:
    """All tracks by name; `coverage` is drawn from 0 to `genomes`, the related ones.

    >>> list(list_constraint_kinds())
    ['rs', 'phylop', 'conserved', 'rate', 'coverage', 'length']
    """
    return {
        name: TrackKind(
            label, (0, genomes) if name == "coverage" else limits, colour, partial(_take, name)
        )
        for name, (label, limits, colour) in _KINDS.items()
    }


class ConstraintPiece(NamedTuple):
    """What is read of the bases of a piece: `values` (n, COLUMNS), float32, NaN where there is
    none, and `bases` (n, G), codes of the related genomes, 4 where one is absent.
    """

    values: NDArray[np.float32]
    bases: NDArray[np.uint8]

    def pack(self) -> bytes:
        """As bytes: `values`, then `bases`."""
        return self.values.astype("<f4").tobytes() + self.bases.tobytes()

    @classmethod
    def unpack(cls, row: bytes, n: int) -> "ConstraintPiece":
        """Read `pack` of n bases."""
        cut = 4 * COLUMNS * n
        values = np.frombuffer(row, "<f4", COLUMNS * n).reshape(n, COLUMNS)
        return cls(values, np.frombuffer(row, np.uint8, offset=cut).reshape(n, -1))
