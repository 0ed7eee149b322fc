"""Measure the identity of windows with a genome, which distinguishes strains from other species.

The best diagonal at a position is the one with the most matches among the `FLANK` bases on either
side. Where it matches more than `LEAST_FLANK` of them, the position is homologous. Identity is the
share of homologous bases that this diagonal matches.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.memory.copying import read_sources
from genodiff.memory.memory import NOWHERE, Memory
from genodiff.memory.text import NONE, Codes

STRAIN = 0.98
"""A genome is of the same species if most windows match it in more than this share of bases."""
LEAST_FLANK = 0.6
FLANK = 32


class Identities(NamedTuple):
    """For each window (B,), the share of its bases that are homologous, and the share that are
    homologous and match; both of all its bases but N.
    """

    homologous: NDArray[np.float64]
    agrees: NDArray[np.float64]

    @property
    def share_same(self) -> float:
        """The share of windows in which more than `STRAIN` of the bases match."""
        return float((self.agrees > STRAIN).mean()) if len(self.agrees) else 0.0

    @property
    def mean(self) -> float:
        """The identity over all homologous bases."""
        total = self.homologous.sum()
        return float(self.agrees.sum() / total) if total else 0.0

    @property
    def is_strain(self) -> bool:
        """Whether the genome is of the same species: most windows are nearly identical."""
        return self.share_same > 0.5


def measure_identities(memory: Memory, windows: Codes) -> Identities:
    """Measure the identity of windows (B, L) of codes with the genome of a memory."""
    found = memory.find_all(windows)
    rows = [
        _measure_one(memory, codes, diagonals)
        for codes, diagonals in zip(windows, found, strict=True)
    ]
    table = np.array(rows, np.float64).reshape(-1, 2)
    return Identities(table[:, 0], table[:, 1])


def _measure_one(
    memory: Memory, codes: Codes, diagonals: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> tuple[float, float]:
    known = codes < NONE
    if not any(map(len, diagonals)) or not known.any():
        return 0.0, 0.0
    sources = read_sources(memory.text, len(codes), diagonals, NOWHERE)
    agrees = ((sources == codes[:, None]) & known[:, None]).astype(np.int64)
    around = _sum_around(agrees) - agrees
    n = (_sum_around(known[:, None].astype(np.int64)) - known[:, None])[:, 0]
    at, best = np.arange(len(codes)), around.argmax(1)
    near = (around[at, best] > LEAST_FLANK * np.maximum(n, 1))[known]
    return float(near.mean()), float((agrees[at, best][known] * near).mean())


def _sum_around(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sum each row with the `FLANK` rows on either side."""
    total = np.concatenate((np.zeros((1, values.shape[1]), np.int64), values.cumsum(0)))
    at = np.arange(len(values))
    last = np.minimum(at + FLANK + 1, len(values))
    result: NDArray[np.int64] = total[last] - total[np.maximum(at - FLANK, 0)]
    return result
