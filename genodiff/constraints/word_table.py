"""Which words end at each position: a table of states over the five symbols.

Aho and Corasick 1975: the state is the longest suffix that is a prefix of a word. Words with IUPAC
codes are many words at once, so their state is the set of all prefixes that fit, found by the
subset construction. Of plain words both give the same automaton.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from Bio.Data.IUPACData import ambiguous_dna_values
from numpy.typing import NDArray

from genodiff.constraints.constraint import BASES, OTHER
from genodiff.errors import UsageError

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


def make_word_table(words: Sequence[str]) -> WordTable:
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
