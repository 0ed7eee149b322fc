"""How much of a window stands in a text: by this, strains are told from relatives.

At each place the best diagonal is the one that agrees most in the 32 places on either side. The
identity of a window is the share of its bases with which that diagonal agrees. A base beside which
no diagonal agrees in more than `LEAST_FLANK` of the places does not.
"""

import numpy as np
from numpy.typing import NDArray

from genodiff.memory.copying import read_sources
from genodiff.memory.memory import NOWHERE, Memory
from genodiff.memory.text import NONE, Codes

STRAIN = 0.98
"""The identity of most windows, above which a genome is of the same species."""
LEAST_FLANK = 0.6
FLANK = 32


def measure_identities(memory: Memory, windows: Codes) -> NDArray[np.float64]:
    """(B,): the identity of each window (B, L) of codes, between 0 and 1."""
    found = memory.find_all(windows)
    return np.array(
        [
            _measure_one(memory, codes, diagonals)
            for codes, diagonals in zip(windows, found, strict=True)
        ]
    )


def is_strain(identities: NDArray[np.float64]) -> bool:
    """Whether a genome with these identities to windows of another is of the same species."""
    return len(identities) > 0 and share_above(identities) > 0.5


def share_above(identities: NDArray[np.float64]) -> float:
    """The share of windows whose identity is above `STRAIN`."""
    return float((identities > STRAIN).mean()) if len(identities) else 0.0


def _measure_one(
    memory: Memory, codes: Codes, diagonals: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> float:
    known = codes < NONE
    if not any(map(len, diagonals)) or not known.any():
        return 0.0
    sources = read_sources(memory.text, len(codes), diagonals, NOWHERE)
    agrees = ((sources == codes[:, None]) & known[:, None]).astype(np.int64)
    around = _sum_around(agrees) - agrees
    n = _sum_around(known[:, None].astype(np.int64)) - known[:, None]
    best = around.argmax(1)
    at = np.arange(len(codes))
    near = around[at, best] > LEAST_FLANK * np.maximum(n[:, 0], 1)
    return float((agrees[at, best] * near)[known].mean())


def _sum_around(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sums over `FLANK` rows on either side, and the row itself."""
    total = np.concatenate((np.zeros((1, values.shape[1]), np.int64), values.cumsum(0)))
    at = np.arange(len(values))
    last = np.minimum(at + FLANK + 1, len(values))
    result: NDArray[np.int64] = total[last] - total[np.maximum(at - FLANK, 0)]
    return result
