"""Constraints on words: forbidden, required, a pattern, enzymes' sites, runs.

A table of states says which words end at each position (Aho and Corasick 1975): the state is the
longest suffix that is a prefix of a word. Words with IUPAC codes are many words at once, so their
state is the set of all prefixes that fit, found by the subset construction. Of plain words both
give the same automaton.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from Bio import Restriction
from Bio.Data.IUPACData import ambiguous_dna_values
from numpy.typing import NDArray

from genodiff.alphabet import reverse_complement
from genodiff.constraints.constraint import (
    BASES,
    DEAD,
    OTHER,
    Automaton,
    Constraint,
    DesignSpace,
    Mask,
    SetAutomaton,
    Span,
    States,
)
from genodiff.errors import UsageError, did_you_mean

_ENZYMES: Any = Restriction  # its names are made when it is imported
MOST_STATES = 1 << 17
CODES = {code: frozenset(bases) for code, bases in ambiguous_dna_values.items() if code != "X"}
"""The bases that each IUPAC code stands for."""


@dataclass(frozen=True, eq=False)
class WordTable:
    """`moves` (S, 5) is the next state; `longest` and `shortest` (S,) are lengths of the words that
    end there, 0 and a large number where none does. State 0 has read nothing that counts.
    """

    moves: NDArray[np.int64]
    longest: NDArray[np.int64]
    shortest: NDArray[np.int64]
    reach: int
    """The length of the longest word."""


def check_word(word: str) -> str:
    """`word` in upper case. Raises `UsageError` where it is empty or no IUPAC DNA."""
    upper = word.strip().upper()
    if not upper:
        raise UsageError("an empty word", fix="give letters such as GAATTC")
    for letter in upper:
        if letter not in CODES:
            fix = "give letters such as GAATTC or GGNCC"
            raise UsageError(f"word '{word}': '{letter}' is no base and no IUPAC code", fix=fix)
    return upper


@lru_cache(maxsize=64)
def make_word_table(words: tuple[str, ...]) -> WordTable:
    """The table of these words, each in upper case. Raises `UsageError` above `MOST_STATES`."""
    if all(set(word) <= set(BASES) for word in words):
        return _make_trie(words)
    fits = [0] * 5  # of each symbol, the places of all words that take it
    starts = 0
    ends: list[tuple[int, int]] = []
    at = 0
    for word in words:
        starts |= 1 << at
        for i, code in enumerate(word):
            for base in CODES[code]:
                fits[BASES.index(base)] |= 1 << (at + i)
        at += len(word)
        ends.append((1 << (at - 1), len(word)))
    found = {0: 0}
    queue = [0]
    moves: list[list[int]] = []
    for state in queue:
        row = []
        for symbol in range(5):
            # A bit that leaves one word enters the next at its start, where it stands anyway.
            after = ((state << 1) | starts) & fits[symbol]
            if after not in found:
                found[after] = len(queue)
                queue.append(after)
            row.append(found[after])
        moves.append(row)
        _check_size(len(queue))
    lengths = [[length for bit, length in ends if state & bit] for state in queue]
    return _make(moves, lengths, max(map(len, words)))


def _make_trie(words: Sequence[str]) -> WordTable:
    children: list[dict[int, int]] = [{}]
    lengths: list[list[int]] = [[]]
    for word in words:
        at = 0
        for letter in word:
            symbol = BASES.index(letter)
            if symbol not in children[at]:
                children[at][symbol] = len(children)
                children.append({})
                lengths.append([])
            at = children[at][symbol]
        lengths[at].append(len(word))
        _check_size(len(children))
    moves = [[0] * 5 for _ in children]
    queue = [(0, 0)]  # a state, and the state of its longest proper suffix
    for state, suffix in queue:
        if state:
            lengths[state] = lengths[state] + lengths[suffix]
        for symbol in range(OTHER):
            child = children[state].get(symbol)
            after = moves[suffix][symbol] if state else 0
            moves[state][symbol] = after if child is None else child
            if child is not None:
                queue.append((child, after))
    return _make(moves, lengths, max(map(len, words)))


def _make(moves: list[list[int]], lengths: list[list[int]], reach: int) -> WordTable:
    none = 1 << 40
    longest = np.array([max(some, default=0) for some in lengths])
    shortest = np.array([min(some, default=none) for some in lengths])
    return WordTable(np.array(moves, np.int64), longest, shortest, reach)


def _check_size(n: int) -> None:
    if n > MOST_STATES:
        fix = "give fewer or shorter words, or fewer N inside them"
        raise UsageError(f"the words need more than {MOST_STATES:,} states", fix=fix)


def find_strands(words: Iterable[str], both: bool) -> tuple[str, ...]:
    """The words, and if `both` their reverse complements, each once."""
    found = [check_word(word) for word in words]
    turned = [str(reverse_complement(word)) for word in found] if both else []
    return tuple(dict.fromkeys(found + turned))


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
        return make_word_table(find_strands(self.words, self.both))

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
