"""Open reading frames of short sequences: the longest stretch of codons without a stop.

Windows are cut anywhere, so a frame need not begin with ATG, and the ends of a sequence close it as
a stop does. Real coding sequence has longer open frames than sequence of the same composition.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA
from genodiff.generate.scorecard import Ids, read_bases

_STOPS = ("TAA", "TAG", "TGA")
_WORDS = np.array([[DNA.targets.index(b) for b in DNA.encode(word)] for word in _STOPS])
_IS_STOP = np.zeros(64, bool)
_IS_STOP[_WORDS @ np.array([16, 4, 1])] = True


def measure_open_frames(sequences: Sequence[Ids]) -> NDArray[np.int64]:
    """The longest open reading frame of each sequence, in codons, over all six frames.

    It is cut by TAA, TAG and TGA, and by every letter that is not A, C, G or T.
    """
    found = np.zeros(len(sequences), np.int64)
    for i, ids in enumerate(sequences):
        forward = read_bases(ids)
        backward = np.where(forward >= 0, 3 - forward, -1)[::-1]
        found[i] = max(
            _longest_run(strand[frame:]) for strand in (forward, backward) for frame in range(3)
        )
    return found


def _longest_run(bases: NDArray[np.int64]) -> int:
    """The longest run of codons that are whole and no stop, from the first base on."""
    codons = bases[: len(bases) // 3 * 3].reshape(-1, 3)
    whole = (codons >= 0).all(1)
    number = np.where(codons >= 0, codons, 0) @ np.array([16, 4, 1])
    closed = np.flatnonzero(~whole | _IS_STOP[number])
    return int(np.diff(np.r_[-1, closed, len(codons)]).max() - 1)
