"""Constraints as immutable values: each says what must hold, `a & b` that both must.

    rules = Avoid(("GGTCTC",)) & MaxRun(4) & GcContent(0.3, 0.7)

A constraint compiles to automata over a `DesignSpace`. Intervals are 0-based and half-open, in the
contig's coordinates; None is the interval that the space has judged.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from genodiff.constraints.automaton import Automaton
from genodiff.constraints.space import DesignSpace, EditLimit

Span = tuple[int, int] | None


class Constraint(ABC):
    """What a designed sequence must satisfy."""

    @abstractmethod
    def parts(self) -> Iterator["Constraint"]:
        """The constraints that this one joins; itself where it joins none."""

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


class SingleConstraint(Constraint):
    """A constraint that joins no others."""

    def parts(self) -> Iterator[Constraint]:
        yield self


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
