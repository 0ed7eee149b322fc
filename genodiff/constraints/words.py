"""Constraints on words: forbidden, required, enzymes' sites, runs, repeats of a FASTA file."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from Bio import Restriction

from genodiff.alphabet import reverse_complement
from genodiff.constraints.constraint import (
    BASES,
    DEAD,
    Automaton,
    Constraint,
    DesignSpace,
    Mask,
    Span,
    States,
)
from genodiff.constraints.word_table import WordTable, check_word, make_word_table
from genodiff.errors import UsageError, did_you_mean

_ENZYMES: Any = Restriction  # its names are made when it is imported


def find_strands(words: Iterable[str], both: bool) -> tuple[str, ...]:
    """The words, and if `both` their reverse complements, each once."""
    found = [check_word(word) for word in words]
    turned = [str(reverse_complement(word)) for word in found] if both else []
    return tuple(dict.fromkeys(found + turned))


@lru_cache(maxsize=64)
def open_table(words: tuple[str, ...]) -> WordTable:
    return make_word_table(words)


class AvoidWordsAutomaton(Automaton):
    """No word of the table shares a base with positions start … end."""

    def __init__(self, table: WordTable, start: int, end: int, length: int) -> None:
        self.first = max(0, start - table.reach + 1)
        self.last = min(length, end + table.reach - 1)
        self.size, self._table, self._start, self._end = len(table.moves), table, start, end

    def step(self, position: int, states: States) -> States:
        found = self._table.moves[states]
        if position < self._start:
            return found
        # A word of k letters that ends here begins at position − k + 1, which must not be < end.
        bad = self._table.longest[found] > max(0, position + 1 - self._end)
        return np.where(bad, DEAD, found)


class RequireWordsAutomaton(Automaton):
    """At least one word of the table lies within start … end. The last state has seen one."""

    def __init__(self, table: WordTable, start: int, end: int) -> None:
        self.first, self.last, self._table = start, end, table
        self.size = len(table.moves) + 1

    def step(self, position: int, states: States) -> States:
        done = self.size - 1
        found = self._table.moves[np.minimum(states, done - 1)]
        seen = (states == done)[:, None] | (self._table.longest[found] > 0)
        return np.where(seen, done, found)

    def accept(self, states: States) -> Mask:
        return states == self.size - 1


@dataclass(frozen=True)
class _Words(Constraint):
    """Words (IUPAC) on this strand, or on either if `both`."""

    words: tuple[str, ...]
    both: bool = True
    span: Span = None

    def __post_init__(self) -> None:
        _refuse_text(self.words)
        find_strands(self.words, False)

    @property
    def table(self) -> WordTable:
        """The table of all words, on all strands."""
        return open_table(find_strands(self.words, self.both))

    def __str__(self) -> str:
        where = "" if self.both else " (this strand)"
        return f"{type(self).__name__.lower()} {_shorten(self.words)}{where}"


@dataclass(frozen=True)
class Avoid(_Words):
    """None of `words` (IUPAC) shares a base with the interval, on either strand if `both`."""

    def automata(self, space: DesignSpace) -> list[Automaton]:
        start, end = space.find_interval(self.span)
        automaton = AvoidWordsAutomaton(self.table, start, end, len(space.letters))
        return [automaton] if end > start else []

    @property
    def reach(self) -> int:
        return max(map(len, self.words)) - 1


@dataclass(frozen=True)
class Require(_Words):
    """One of `words` (IUPAC) lies within the interval, on either strand if `both`."""

    def automata(self, space: DesignSpace) -> list[Automaton]:
        return [RequireWordsAutomaton(self.table, *space.find_interval(self.span))]


@dataclass(frozen=True)
class AvoidSites(Constraint):
    """No recognition site of these restriction enzymes, on either strand (Biopython's tables)."""

    enzymes: tuple[str, ...]
    span: Span = None

    def __post_init__(self) -> None:
        _refuse_text(self.enzymes)
        for name in self.enzymes:
            find_site(name)

    @property
    def _avoid(self) -> Avoid:
        return Avoid(tuple(find_site(name) for name in self.enzymes), True, self.span)

    def automata(self, space: DesignSpace) -> list[Automaton]:
        return self._avoid.automata(space)

    @property
    def reach(self) -> int:
        return self._avoid.reach

    def __str__(self) -> str:
        return f"enzymes {_shorten(self.enzymes)}"


@dataclass(frozen=True)
class MaxRun(Constraint):
    """No run of one base longer than `longest` shares a base with the interval."""

    longest: int
    span: Span = None

    def __post_init__(self) -> None:
        if self.longest < 1:
            raise UsageError(f"a longest run of {self.longest}", fix="give 1 or more")

    def automata(self, space: DesignSpace) -> list[Automaton]:
        if self.longest >= len(space.letters):
            return []
        words = tuple(base * (self.longest + 1) for base in BASES)
        return Avoid(words, False, self.span).automata(space)

    @property
    def reach(self) -> int:
        return self.longest

    def __str__(self) -> str:
        return f"runs of at most {self.longest}"


@dataclass(frozen=True)
class NoRepeats(Constraint):
    """No stretch longer than `longest` bases that stands in the file as well, on either strand.

    `words` are the file's stretches of `longest` + 1 bases, both strands; `repeats.read_repeats`
    reads them.
    """

    longest: int
    words: tuple[str, ...]
    source: str = "the FASTA file"
    span: Span = None

    def automata(self, space: DesignSpace) -> list[Automaton]:
        return Avoid(self.words, False, self.span).automata(space) if self.words else []

    @property
    def reach(self) -> int:
        return self.longest

    def __str__(self) -> str:
        return f"no repeat of {self.source} longer than {self.longest}"

    def __repr__(self) -> str:  # all words would be megabytes
        return f"NoRepeats({self.longest}, {len(self.words)} words, {self.source!r}, {self.span})"


def find_site(name: str) -> str:
    """The recognition site of an enzyme. Raises `UsageError` for an unknown one."""
    found = getattr(_ENZYMES, name, None)
    if found is None or found not in _ENZYMES.AllEnzymes:
        hint = did_you_mean(name, [str(enzyme) for enzyme in _ENZYMES.CommOnly])
        if not hint.startswith("did"):
            hint = "names are those of REBASE, such as EcoRI or BsaI"
        raise UsageError(f"no restriction enzyme '{name}'; {hint}")
    site = str(found.site).upper()
    try:
        return check_word(site)
    except UsageError:
        what = f"enzyme {name} has no site that can be written in IUPAC codes"
        raise UsageError(what, fix="leave it out") from None


def _refuse_text(words: tuple[str, ...]) -> None:
    if isinstance(words, str) or not words:
        raise UsageError("words are given as a tuple of one or more", fix='write ("GAATTC",)')


def _shorten(words: tuple[str, ...]) -> str:
    return ", ".join(words) if len(words) <= 12 else f"{', '.join(words[:10])} … ({len(words)})"
