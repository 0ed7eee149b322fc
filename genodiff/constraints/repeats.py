"""No repeats of a genome: stretches that are looked up, where they are too many for an automaton.

An automaton of all stretches of a genome of millions of bases has too many states. So they are
kept as sorted numbers, and a design is read after it was drawn: one that repeats the genome is
drawn again. Accepted designs follow the law of the sampler, conditioned on having no repeat.

What stood there before is a repeat of its own genome. Its stretches that hold a kept base (all of
them, where edits are limited) are forbidden by an automaton. So designs of few edits are found, and
what cannot be met is still proved before the network runs.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from Bio.Seq import reverse_complement
from numpy.typing import NDArray

from genodiff.alphabet import LETTER_CODES
from genodiff.constraints.constraint import BASES, Automaton, Constraint, DesignSpace
from genodiff.constraints.words import Avoid, Span, make_word_table
from genodiff.errors import DataError, UsageError
from genodiff.io.fasta import read_fasta
from genodiff.words import find_whole, pack_kmers

MOST_LISTED = 20_000
"""Bases of a file whose stretches are given to an automaton, unless it needs too many states."""

Hashes = NDArray[np.uint64]
_BASE = 0x9E3779B97F4A7C15


def hash_stretches(text: bytes, size: int) -> tuple[Hashes, NDArray[np.bool_]]:
    """A number for each stretch of `size` bases (n - size + 1,), and whether all are A, C, G, T.

    Equal stretches have equal numbers. Up to 32 bases they are two bits each, and different ones
    have different numbers; of longer ones that is as good as certain.
    """
    codes = LETTER_CODES[np.frombuffer(text.upper(), np.uint8)]
    if len(codes) < size:
        return np.zeros(0, np.uint64), np.zeros(0, bool)
    factor = 4 if size <= 32 else _BASE
    return pack_kmers(codes.astype(np.uint64), size, factor), find_whole(codes, size)


def _sort_once(parts: list[Hashes]) -> Hashes:
    found = np.concatenate(parts)
    found.sort()
    return found[np.append(True, found[1:] != found[:-1])] if len(found) else found


class _OfFile(Constraint):
    longest: int
    source: str

    @property
    def reach(self) -> int:
        return self.longest

    def __str__(self) -> str:
        return f"no repeat of {self.source} longer than {self.longest}"


@dataclass(frozen=True)
class NoRepeats(_OfFile):
    """No stretch longer than `longest` bases that stands in the file as well, on either strand.

    `words` are the file's stretches of `longest` + 1 bases, both strands; see `read_repeats`.
    """

    longest: int
    words: tuple[str, ...]
    source: str = "the FASTA file"
    span: Span = None

    def automata(self, space: DesignSpace) -> list[Automaton]:
        return Avoid(self.words, False, self.span).automata(space) if self.words else []

    def __repr__(self) -> str:  # all words would be megabytes
        return f"NoRepeats({self.longest}, {len(self.words)} words, {self.source!r}, {self.span})"


@dataclass(frozen=True)
class NoGenomeRepeats(_OfFile):
    """No stretch longer than `longest` bases that stands in the file as well, on either strand.

    `hashes` are sorted, of the file's forward strand; see `read_repeats`.
    """

    longest: int
    hashes: Hashes = field(repr=False, compare=False)
    source: str = "the FASTA file"
    span: Span = None

    @cached_property
    def digest(self) -> str:
        """12 hex digits of what the file holds."""
        return hashlib.sha256(self.hashes.tobytes()).hexdigest()[:12]

    def find_repeats(self, text: str, start: int, end: int) -> Iterator[int]:
        """Where stretches of the file that share a base with start … end begin in `text`."""
        size = self.longest + 1
        lo, hi = max(0, start - self.longest), min(len(text), end + self.longest)
        piece = text[lo:hi]
        found = np.zeros(max(0, len(piece) - self.longest), bool)
        for strand, turn in ((piece, 1), (str(reverse_complement(piece)), -1)):
            hashes, known = hash_stretches(strand.encode("ascii"), size)
            at = np.searchsorted(self.hashes, hashes)
            there = np.zeros(len(hashes), bool)
            inside = at < len(self.hashes)
            there[inside] = self.hashes[at[inside]] == hashes[inside]
            found |= (there & known)[::turn]
        return (int(at) + lo for at in np.flatnonzero(found))

    def automata(self, space: DesignSpace) -> list[Automaton]:
        text, size = space.letters.upper().decode("ascii"), self.longest + 1
        words = {
            text[at : at + size]
            for at in self.find_repeats(text, *space.find_interval(self.span))
            if space.limits or not space.free[at : at + size].all()
        }
        return Avoid(tuple(sorted(words)), False, self.span).automata(space) if words else []

    def __repr__(self) -> str:
        return f"NoGenomeRepeats({self.longest}, {self.digest}, {self.source!r}, {self.span})"


def read_repeats(path: str, longest: int, span: Span = None) -> NoRepeats | NoGenomeRepeats:
    """The constraint of a FASTA file, of any size up to a genome. Raises `DataError`, `UsageError`.

    Stretches with a letter that is not A, C, G or T are left out. A circular record goes round. It
    takes 8 bytes for each base.
    """
    if longest < 1:
        raise UsageError(f"repeats longer than {longest}", fix="give 1 or more")
    size = longest + 1
    texts: list[bytes] = []
    parts: list[Hashes] = []
    n = total = 0
    for record in read_fasta(path):
        n, total = n + 1, total + len(record.sequence)
        text = record.sequence + (record.sequence[:longest] if record.is_circular else b"")
        if total <= MOST_LISTED:
            texts.append(text)
        hashes, known = hash_stretches(text, size)
        parts.append(hashes[known])
    if not n:
        raise DataError("holds no record", file=path, fix="give a FASTA file with a sequence")
    if total <= MOST_LISTED:
        try:
            return _list_repeats(texts, path, longest, span)
        except UsageError:  # too many states
            pass
    return NoGenomeRepeats(longest, _sort_once(parts), path, span)


def _list_repeats(texts: list[bytes], path: str, longest: int, span: Span) -> NoRepeats:
    found: dict[str, None] = {}
    size = longest + 1
    for one in texts:
        text = one.upper().decode("ascii")
        for part in (text, str(reverse_complement(text))):
            every = (part[i : i + size] for i in range(len(part) - size + 1))
            found |= dict.fromkeys(word for word in every if not word.strip(BASES))
    rule = NoRepeats(longest, tuple(found), path, span)
    if rule.words:
        make_word_table(rule.words)  # refuse now what is too large
    return rule
