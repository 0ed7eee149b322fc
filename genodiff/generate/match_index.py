"""The longest exact match of sequences in a training text, for memorisation checks.

Every place of the text, on both strands, is written as a word of its next 32 bases, two bits each,
and the words are sorted. The best match of a place stands next to where its own word belongs, so it
costs one search. Places that match in all 32 bases are extended against every place of that word.

`generate.scorecard.longest_matches` is the slow definition that this is tested against.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from genodiff.generate.scorecard import Ids, read_bases

WORD = 32
_PAIRS = 1 << 20  # places of sequence and text that are extended together

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]


class MatchIndex:
    """A text that matches are looked up in, both strands.

    It takes 25 bytes for each base and strand. Stretches of the text that are shorter than 32 bases
    are not searched; a letter other than A, C, G and T, and an end, break a match.
    """

    def __init__(self, text: Iterable[Ids]) -> None:
        parts = [read_bases(ids).astype(np.int8) for ids in text]
        bases = _join([*parts, *map(_turn, parts)])
        self._words, self._room = _pack(bases), _count_room(bases)
        full = np.flatnonzero(self._room >= WORD)
        order = np.argsort(self._words[full], kind="stable")
        self._place = full[order].astype(np.int64)
        self._sorted = self._words[self._place]

    def measure_longest(self, sequences: Sequence[Ids]) -> Ints:
        """The longest stretch of each sequence, in bases, that stands in the text on a strand."""
        parts = [read_bases(ids).astype(np.int8) for ids in sequences]
        parts = [side for part in parts for side in (part, _turn(part))]
        found = np.zeros(len(sequences), np.int64)
        bases = _join(parts)
        if not len(self._sorted) or not len(bases):
            return found
        owner = np.repeat(np.arange(len(parts)) // 2, [len(part) + 1 for part in parts])
        words, room = _pack(bases), _count_room(bases)
        at = np.flatnonzero(room)
        at = at[np.argsort(words[at], kind="stable")]
        right = np.searchsorted(self._sorted, words[at])
        length = np.zeros(len(at), np.int64)
        for side in (right - 1, right):
            near = self._sorted[np.clip(side, 0, len(self._sorted) - 1)]
            length = np.maximum(length, _count_shared(words[at], near))
        length = np.minimum(length, room[at])
        np.maximum.at(found, owner[at], length)
        whole = length >= WORD
        first, at = right[whole], at[whole]
        last = np.searchsorted(self._sorted, words[at], side="right")
        self._extend(words, room, at, first, last - first, owner, found)
        return found

    def _extend(
        self,
        words: Words,
        room: Ints,
        at: Ints,
        first: Ints,
        copies: Ints,
        owner: Ints,
        found: Ints,
    ) -> None:
        """Follow every pair of places that share a word to its end, and keep the longest."""
        upto = np.cumsum(copies)
        start = 0
        while start < len(at):
            done = upto[start - 1] if start else 0
            end = max(start + 1, int(np.searchsorted(upto, done + _PAIRS, side="right")))
            rows = np.repeat(np.arange(start, end), copies[start:end])
            within = np.arange(len(rows)) - (upto[rows] - copies[rows] - done)
            mine, theirs = at[rows], self._place[first[rows] + within]
            best = np.full(len(rows), WORD, np.int64)
            live = np.arange(len(rows))
            while len(live):
                a, b = mine[live] + best[live], theirs[live] + best[live]
                shared = _count_shared(words[a], self._words[b])
                shared = np.minimum(np.minimum(shared, room[a]), self._room[b])
                best[live] += shared
                live = live[shared == WORD]
            np.maximum.at(found, owner[mine], best)
            start = end


def _turn(bases: NDArray[np.int8]) -> NDArray[np.int8]:
    """The reverse complement."""
    return np.where(bases >= 0, 3 - bases, -1)[::-1].astype(np.int8)


def _join(parts: Sequence[NDArray[np.int8]]) -> NDArray[np.int8]:
    """All parts, an end after each."""
    end = np.full(1, -1, np.int8)
    return np.concatenate([np.zeros(0, np.int8), *(x for part in parts for x in (part, end))])


def _pack(bases: NDArray[np.int8]) -> Words:
    """The next 32 bases of each place, the first in the highest bits; what is no base counts 0."""
    words = np.where(bases >= 0, bases, 0).astype(np.uint64)
    width = 1
    while width < WORD:  # the words of 2, 4, 8, 16 and 32 bases
        later = np.zeros_like(words)
        later[:-width] = words[width:]
        words = (words << np.uint64(2 * width)) | later
        width *= 2
    return words


def _count_room(bases: NDArray[np.int8]) -> Ints:
    """How many bases stand in a row from each place on."""
    place = np.arange(len(bases))
    ends = np.where(bases < 0, place, len(bases))
    return np.minimum.accumulate(ends[::-1])[::-1] - place


def _count_shared(a: Words, b: Words) -> Ints:
    """How many first bases two words share, at most 32."""
    differ = a ^ b
    top = np.zeros(len(differ), np.int64)  # bits up to the highest one that is set
    for step in (32, 16, 8, 4, 2, 1):
        big = differ >> np.uint64(step) > 0
        top += np.where(big, step, 0)
        differ = np.where(big, differ >> np.uint64(step), differ)
    top += differ > 0
    return (64 - top) // 2
