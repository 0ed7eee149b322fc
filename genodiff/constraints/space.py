"""What is designed: letters, which of them are free, and the interval that constraints judge.

A base is a symbol 0 to 3 (A, C, G, T). Every other letter that is kept, such as N, is symbol 4: it
is part of no word, ends a run, and is neither G nor C. At a free position only A, C, G and T come.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

BASES = "ACGT"
OTHER = 4
_SYMBOL = np.full(256, OTHER, np.int8)
for _i, _letter in enumerate(BASES):
    _SYMBOL[[ord(_letter), ord(_letter.lower())]] = _i

Symbols = NDArray[np.int8]
Mask = NDArray[np.bool_]


def read_symbols(letters: bytes) -> Symbols:
    """Symbols (L,) of letters of either case."""
    return _SYMBOL[np.frombuffer(letters, np.uint8)]


@dataclass(frozen=True, eq=False)
class EditLimit:
    """At most `most` of the symbols that `counted` (L, 5) marks."""

    counted: Mask
    most: int


@dataclass(frozen=True, eq=False)
class DesignSpace:
    """The sequence `letters`, of which positions `free` (L,) may change.

    Constraints judge positions start … end, 0-based and half-open. `offset` is the position of
    letters[0] in its contig, from which the intervals of constraints are counted. `limits` are what
    constraints on edits allow: others may need fewer states where they know them.
    """

    letters: bytes
    free: Mask
    start: int
    end: int
    offset: int = 0
    limits: tuple[EditLimit, ...] = ()

    def __post_init__(self) -> None:
        if len(self.free) != len(self.letters):
            raise ValueError("letters and free differ in length")
        if not 0 <= self.start <= self.end <= len(self.letters):
            raise ValueError("the judged interval is not within the letters")

    @cached_property
    def symbols(self) -> Symbols:
        """Symbols (L,) of the letters."""
        return read_symbols(self.letters)

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        """The free positions (F,), from left to right."""
        return np.flatnonzero(self.free)

    def find_interval(self, span: tuple[int, int] | None) -> tuple[int, int]:
        """An interval of the contig as one of `letters`; None is the judged interval.

        The part that is within the letters; empty where there is none.
        """
        if span is None:
            return self.start, self.end
        start, end = (min(max(0, at - self.offset), len(self.letters)) for at in span)
        return start, max(start, end)


def free_space(length: int) -> DesignSpace:
    """A sequence of `length` free bases, all of them judged."""
    return DesignSpace(b"N" * length, np.ones(length, bool), 0, length)
