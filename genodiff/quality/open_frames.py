"""Reading frames of short sequences: the longest one without a stop, the longest gene, and codons.

Windows are cut anywhere, so an open frame need not begin with ATG, and the ends of a sequence close
it as a stop does. A gene here is ATG, codons, and a stop. Real coding sequence has longer frames
than sequence of the same composition, and uses its codons unevenly: their frequencies in the
longest open frames tell coding sequence from sequence that only has no stops.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA
from genodiff.quality.scorecard import Ids, read_bases


def _number(word: str) -> int:
    first, second, third = (DNA.targets.index(b) for b in DNA.encode(word))
    return 16 * first + 4 * second + third


STOPS = tuple(_number(word) for word in ("TAA", "TAG", "TGA"))
_START = _number("ATG")
_IS_STOP = np.zeros(64, bool)
_IS_STOP[list(STOPS)] = True

Ints = NDArray[np.int64]


def measure_open_frames(sequences: Sequence[Ids]) -> Ints:
    """The longest open reading frame of each sequence, in codons, over all six frames.

    It is cut by TAA, TAG and TGA, and by every letter that is not A, C, G or T.
    """
    return np.array([len(_find_longest(ids)) for ids in sequences], np.int64)


def count_codons(sequences: Sequence[Ids]) -> Ints:
    """Codons (sequences, 64) of the longest open frame of each sequence, AAA < AAC < ... < TTT."""
    found = np.zeros((len(sequences), 64), np.int64)
    for row, ids in zip(found, sequences, strict=True):
        row += np.bincount(_find_longest(ids), minlength=64)
    return found


def measure_genes(sequences: Sequence[Ids]) -> Ints:
    """The longest ATG ... stop of each sequence over all six frames, in codons without the stop."""
    found = np.zeros(len(sequences), np.int64)
    for i, ids in enumerate(sequences):
        for codons in _read_frames(ids):
            stops = np.flatnonzero(_IS_STOP[codons] & (codons >= 0))
            edges = np.flatnonzero((codons < 0) | (_IS_STOP[codons] & (codons >= 0)))
            starts = np.flatnonzero(codons == _START)
            if not len(stops) or not len(starts):
                continue
            before = np.r_[-1, edges][np.searchsorted(edges, stops)]
            first = np.searchsorted(starts, before, side="right")
            begins = np.r_[starts, len(codons)][first]
            found[i] = max(found[i], int((stops - begins).max()))
    return found


def _read_frames(ids: Ids) -> Iterator[Ints]:
    """The codons of the six frames as numbers, -1 where a letter is none of A, C, G, T."""
    forward = read_bases(ids)
    backward = np.where(forward >= 0, 3 - forward, -1)[::-1]
    for strand in (forward, backward):
        for frame in range(3):
            bases = strand[frame:]
            codons = bases[: len(bases) // 3 * 3].reshape(-1, 3)
            yield np.where((codons >= 0).all(1), codons @ np.array([16, 4, 1]), -1)


def _find_longest(ids: Ids) -> Ints:
    """The codons of the longest open frame; of equal ones the first."""
    best = np.zeros(0, np.int64)
    for codons in _read_frames(ids):
        closed = np.r_[-1, np.flatnonzero((codons < 0) | _IS_STOP[codons]), len(codons)]
        at = int(np.diff(closed).argmax())
        if closed[at + 1] - closed[at] - 1 > len(best):
            best = codons[closed[at] + 1 : closed[at + 1]]
    return best
