"""The longest exact match of sequences in a training text, for memorisation checks.

Every place of the text, on both strands, is written as a word of its next 32 bases, two bits each,
and the words are sorted. The best match of a place stands next to where its own word belongs, so it
costs one search. Places that match in all 32 bases are extended against every place of that word.

`quality.scorecard.longest_matches` is the definition that this is tested against.

A copy with changed bases has short matches only. `measure_identity` finds it: words of 12 bases
that a sequence and the text share name a diagonal, and on the diagonals with the most of them all
bases are compared, without gaps.

A text of any size is read piece by piece, and each piece is indexed, searched for all sequences,
and forgotten (`TrainText`). A match over the edge of two pieces is found whole where it is at most
4,096 bases.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.quality.scorecard import Ids, read_bases, turn_bases
from genodiff.words import Words, pack_kmers

WORD = 32
_PAIRS = 1 << 20  # places of sequence and text that are extended together
_SEED = 12  # bases; a stretch of 12 is left in a copy of 100 bases with a fifth of them changed
_MOST_PLACES = 64  # of the text, for each seed: more are taken evenly
_DIAGONALS = 4  # that are compared
PIECE, OVERLAP = 1 << 23, 1 << 12
"""Bases of a piece of a text, whose index takes 50 bytes for each, and those that two share."""

Ints = NDArray[np.int64]


class MatchIndex:
    """A text that matches are looked up in, both strands.

    It takes 25 bytes for each base and strand. Stretches of the text that are shorter than 32 bases
    are not searched; a letter other than A, C, G and T, and an end, break a match.
    """

    def __init__(self, text: Iterable[Ids]) -> None:
        parts = [read_bases(ids).astype(np.int8) for ids in text]
        bases = _join([*parts, *map(turn_bases, parts)])
        self._words, self._room = _pack(bases), _count_room(bases)
        self._ends = np.cumsum([len(part) + 1 for part in [*parts, *parts]])
        full = np.flatnonzero(self._room >= WORD)
        order = np.argsort(self._words[full], kind="stable")
        self._place = full[order].astype(np.int64)
        self._sorted = self._words[self._place]

    def measure_longest(self, sequences: Sequence[Ids]) -> Ints:
        """The longest stretch of each sequence, in bases, that stands in the text on a strand."""
        parts = [read_bases(ids).astype(np.int8) for ids in sequences]
        parts = [side for part in parts for side in (part, turn_bases(part))]
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

    def measure_identity(
        self, sequences: Sequence[Ids], *, skip_own: bool = False
    ) -> NDArray[np.float64]:
        """The share of each sequence's places with the base of the most similar stretch of text.

        Either strand of the text counts; gaps are not tried. `skip_own`: the sequences are the text
        itself, and each is compared with the others only.
        """
        found = np.zeros(len(sequences))
        for i, ids in enumerate(sequences):
            bases = read_bases(ids).astype(np.int8)
            for start, part in self._find_diagonals(bases, i if skip_own else None):
                end = int(self._ends[part])
                first = max(start, int(self._ends[part - 1]) if part else 0)
                last = min(start + len(bases), end)
                theirs = (self._words[first:last] >> np.uint64(62)).astype(np.int8)
                same = theirs == bases[first - start : last - start]
                same &= self._room[first:last] > 0
                found[i] = max(found[i], float(same.sum() / len(bases)))
        return found

    def _find_diagonals(
        self, bases: NDArray[np.int8], own: int | None
    ) -> Iterator[tuple[int, int]]:
        """Where a sequence would begin so that the most of its words fit, and the text's part."""
        at = np.flatnonzero(_count_room(bases) >= _SEED)
        shift = np.uint64(2 * (WORD - _SEED))
        words = _pack(bases)[at] >> shift
        first = np.searchsorted(self._sorted, words << shift)
        last_word = (words << shift) | np.uint64((1 << (2 * (WORD - _SEED))) - 1)
        places = np.searchsorted(self._sorted, last_word, side="right") - first
        taken = np.minimum(places, _MOST_PLACES)
        rows = np.repeat(np.arange(len(at)), taken)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(taken) - taken, taken)
        near = self._place[first[rows] + within * places[rows] // np.maximum(taken[rows], 1)]
        part = np.searchsorted(self._ends, near, side="right")
        if own is not None:
            other = part % (len(self._ends) // 2) != own
            rows, near, part = rows[other], near[other], part[other]
        pairs = np.stack([near - at[rows], part])
        found, votes = np.unique(pairs, axis=1, return_counts=True)
        for column in np.argsort(-votes, kind="stable")[:_DIAGONALS]:
            yield int(found[0, column]), int(found[1, column])

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


def _join(parts: Sequence[NDArray[np.int8]]) -> NDArray[np.int8]:
    """All parts, an end after each."""
    end = np.full(1, -1, np.int8)
    return np.concatenate([np.zeros(0, np.int8), *(x for part in parts for x in (part, end))])


def _pack(bases: NDArray[np.int8]) -> Words:
    """The next 32 bases of each place, the first in the highest bits; what is no base counts 0."""
    known = np.where(bases >= 0, bases, 0).astype(np.uint64)
    return pack_kmers(np.append(known, np.zeros(WORD - 1, np.uint64)), WORD)


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
