"""Constraints as immutable values: each says what must hold, `a & b` that both must.

    rules = Avoid(("GGTCTC",)) & MaxRun(4) & GcContent(0.3, 0.7)

A constraint compiles to automata over a `DesignSpace`. Intervals are 0-based and half-open, in the
contig's coordinates; None is the interval that the space has judged.

What is designed: letters, which of them are free, and the interval that constraints judge.

A base is a symbol 0 to 3 (A, C, G, T). Every other letter that is kept, such as N, is symbol 4: it
is part of no word, ends a run, and is neither G nor C. At a free position only A, C, G and T come.

Automata over positions: what a constraint compiles to.

An automaton reads the positions first … last of a `DesignSpace` from left to right. Its states are
integers from 0 to `size` − 1, and −1 is dead. The moves may depend on the position. `accept` is
asked once, after position last − 1. All methods take and give arrays: a compiler moves many states
at a time.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import UsageError

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


States = NDArray[np.int64]
DEAD = -1


class Automaton(ABC):
    """A deterministic automaton that is at work from position `first` up to `last`."""

    first: int
    last: int
    size: int
    start: int = 0

    weighs: bool = False
    """Whether its moves have weights, `weigh`."""

    def weigh(self, position: int, states: States) -> NDArray[np.float64]:
        """The weights (n, 5) of the moves of states (n,), above 0."""
        return np.ones((len(states), 5))

    @abstractmethod
    def step(self, position: int, states: States) -> States:
        """The next states (n, 5) of states (n,), for the symbols 0 to 4; −1 is dead."""

    def accept(self, states: States) -> Mask:
        """Which states (n,) are good at the end."""
        return np.ones(len(states), bool)


class SetAutomaton(Automaton):
    """Each position has a set of symbols that it may take: `allowed` (last − first, 5)."""

    size = 1

    def __init__(self, first: int, allowed: Mask) -> None:
        self.first, self.last, self._allowed = first, first + len(allowed), allowed

    def step(self, position: int, states: States) -> States:
        row = np.where(self._allowed[position - self.first], 0, DEAD)
        return np.broadcast_to(row, (len(states), 5))


class CountAutomaton(Automaton):
    """Counts symbols that `counted` (last − first, 5) marks, `least` to `most` of them in all."""

    def __init__(self, first: int, counted: Mask, least: int, most: int) -> None:
        self.first, self.last = first, first + len(counted)
        self._counted, self._least, self._most = counted.astype(np.int64), least, most
        self.size = max(most, 0) + 2
        able: Mask = np.any(counted, axis=1)
        left = able[::-1].cumsum()[::-1]
        self._left = np.append(left, 0)

    def step(self, position: int, states: States) -> States:
        at = position - self.first
        found = states[:, None] + self._counted[at]
        doomed = (found > self._most) | (found + self._left[at + 1] < self._least)
        return np.where(doomed, DEAD, found)

    def accept(self, states: States) -> Mask:
        return (states >= self._least) & (states <= self._most)


Span = tuple[int, int] | None


class Constraint(ABC):
    """What a designed sequence must satisfy."""

    def parts(self) -> Iterator["Constraint"]:
        """The constraints that this one joins; itself where it joins none."""
        yield self

    @abstractmethod
    def automata(self, space: DesignSpace) -> list[Automaton]:
        """Automata that accept together exactly what satisfies this. Raises `UsageError`."""

    def limits(self, space: DesignSpace) -> list[EditLimit]:
        """How many edits it allows."""
        return []

    @property
    def reach(self) -> int:
        """How many bases beyond the judged interval it looks at."""
        return 0

    def __and__(self, other: "Constraint") -> "AllOf":
        return AllOf((*self.parts(), *other.parts()))


@dataclass(frozen=True)
class AllOf(Constraint):
    """All of these at once; of none, everything is satisfied."""

    of: tuple[Constraint, ...] = ()

    def parts(self) -> Iterator[Constraint]:
        for one in self.of:
            yield from one.parts()

    def automata(self, space: DesignSpace) -> list[Automaton]:
        return [automaton for one in self.parts() for automaton in one.automata(space)]

    @property
    def reach(self) -> int:
        return max((one.reach for one in self.parts()), default=0)

    def __str__(self) -> str:
        return "; ".join(map(str, self.parts()))


@dataclass(frozen=True)
class KeepBases(Constraint):
    """Each base of the interval stays as it is."""

    span: Span = None

    def automata(self, space: DesignSpace) -> list[Automaton]:
        start, end = space.find_interval(self.span)
        symbols = space.symbols[start:end]
        allowed = symbols[:, None] == np.arange(5)
        return [SetAutomaton(start, allowed)] if end > start else []

    def __str__(self) -> str:
        return "keep" if self.span is None else f"keep {self.span[0] + 1}-{self.span[1]}"


@dataclass(frozen=True)
class MaxEdits(Constraint):
    """At most `most` bases of the interval differ from the letters that stand there.

    A letter that is not A, C, G or T has no base to differ from.
    """

    most: int
    span: Span = None

    def __post_init__(self) -> None:
        if self.most < 0:
            raise UsageError(f"at most {self.most} edits", fix="give 0 or more")

    def automata(self, space: DesignSpace) -> list[Automaton]:
        start, end = space.find_interval(self.span)
        counted = self._count(space)[start:end]
        # More edits than bases bound nothing.
        return [CountAutomaton(start, counted, 0, self.most)] if end - start > self.most else []

    def limits(self, space: DesignSpace) -> list[EditLimit]:
        start, end = space.find_interval(self.span)
        return [EditLimit(self._count(space), self.most)] if end - start > self.most else []

    def _count(self, space: DesignSpace) -> Mask:
        """Which symbols (L, 5) are edits."""
        start, end = space.find_interval(self.span)
        counted = (space.symbols[:, None] != np.arange(5)) & (space.symbols < OTHER)[:, None]
        counted[:start], counted[end:] = False, False
        return counted

    def __str__(self) -> str:
        return f"at most {self.most} edit{'' if self.most == 1 else 's'}"
