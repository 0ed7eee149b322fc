"""Constraints on single positions: bases that are kept, sets of bases, the number of edits."""

from dataclasses import dataclass

import numpy as np

from genodiff.constraints.constraint import (
    BASES,
    OTHER,
    Automaton,
    Constraint,
    CountAutomaton,
    DesignSpace,
    EditLimit,
    Mask,
    SetAutomaton,
    Span,
)
from genodiff.constraints.word_table import CODES, check_word
from genodiff.errors import UsageError


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
class FitPattern(Constraint):
    """The bases from position `at` of the contig on fit an IUPAC pattern, a set for each letter.

    `at` None is the start of the judged interval.
    """

    pattern: str
    at: int | None = None

    def __post_init__(self) -> None:
        check_word(self.pattern)

    def automata(self, space: DesignSpace) -> list[Automaton]:
        start = space.start if self.at is None else self.at - space.offset
        if not 0 <= start <= len(space.letters) - len(self.pattern):
            what = f"a pattern of {len(self.pattern)} letters reaches beyond the sequence"
            raise UsageError(what, fix="give a shorter one")
        sets = {code: [base in some for base in BASES] for code, some in CODES.items()}
        allowed = np.array([[*sets[code], code == "N"] for code in self.pattern.upper()])
        return [SetAutomaton(start, allowed)]

    def __str__(self) -> str:
        text = self.pattern if len(self.pattern) <= 24 else f"{self.pattern[:20]}…"
        return f"pattern {text}"


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
