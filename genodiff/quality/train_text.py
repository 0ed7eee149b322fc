"""A training text of any size, searched for what generated sequences have in common with it.

The text is read piece by piece, and each piece is indexed, searched for all sequences, and
forgotten. A match over the edge of two pieces is found whole where it is at most 4,096 bases.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.quality.match_index import MatchIndex
from genodiff.quality.scorecard import Ids

PIECE = 1 << 23
"""Bases after which a piece ends; an index takes 50 bytes for each."""
OVERLAP = 1 << 12


class TrainMatches(NamedTuple):
    """What each sequence of a set has in common with a training text."""

    longest: NDArray[np.int64]  # bases of the longest exact match
    identity: NDArray[np.float64]  # share of places equal to the most similar stretch


class TrainText:
    """A text that sequences are looked up in; `read` gives it anew each time."""

    def __init__(self, read: Callable[[], Iterable[Ids]], piece: int = PIECE) -> None:
        self._read, self._piece = read, piece

    def search(
        self, sets: Sequence[Sequence[Ids]], tick: Callable[[str], None] | None = None
    ) -> list[TrainMatches]:
        """What the sequences of each set have in common with the text, in one pass over it."""
        queries = [ids for part in sets for ids in part]
        longest, identity = np.zeros(len(queries), np.int64), np.zeros(len(queries))
        bases = 0
        for texts in self._cut():
            index = MatchIndex(texts)
            longest = np.maximum(longest, index.measure_longest(queries))
            identity = np.maximum(identity, index.measure_identity(queries))
            bases += sum(map(len, texts))
            if tick is not None:
                tick(f"searched {bases / 1e6:,.1f} million bases of train")
        edges = np.cumsum([len(part) for part in sets])[:-1]
        pairs = zip(np.split(longest, edges), np.split(identity, edges), strict=True)
        return [TrainMatches(*pair) for pair in pairs]

    def _cut(self) -> Iterator[list[Ids]]:
        held: list[Ids] = []
        room = self._piece
        for text in self._read():
            for start in range(0, len(text), self._piece):
                part = text[max(0, start - OVERLAP) : start + self._piece]
                held.append(part)
                room -= len(part)
                if room <= 0:
                    yield held
                    held, room = [], self._piece
        if held:
            yield held
