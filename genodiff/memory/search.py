"""Which diagonals of the text a window may copy: all of them scored, or those that seeds find.

A diagonal of strand 0 is a number d: place i of the window stands over place d + i of the text. On
strand 1 the window's reverse complement takes the window's place, and all is done in the same way.
So the search gives the same diagonals for both strands of a window, turned.

Score. Informative places are visible and not already foretold by the evidence (FORETOLD). The
window is cut into lanes of 16, 32 or 64 bases: the fewer are informative, the longer. A lane counts
11 for a match and 11 − 32 for a mismatch (eighths of a nat, about 5 % divergence), and a diagonal
has the score of its best run of lanes. A second score, 9 and 9 − 18 in lanes of 64 less PENALTY,
finds copies of about 25 % divergence; the larger of the two stands.

Seeds. Every word of k places with at least `LEAST_SEEN` informative ones is looked up in the table
of k-mers (or of those of a sample of places, `tables.py`), its other places being wild
cards: the words with the fewest wild cards first, and among equals in an order that spreads over
the window. This goes on until the effort is spent.

With a sampled table, and few informative places, agreements are counted on every diagonal instead
(`sift`).

Of all scored diagonals the `most` best are kept on each strand. They are weighed exactly
(`copying.weigh_diagonals`), and those with odds below `least_odds` are dropped. Around the best,
diagonals an insertion or deletion away are added, unless the numbers have none (shift 0).

This file is the definition, in NumPy. `fast.py` has it in C, with the same diagonals.

The sift. Seeds need places side by side that are visible. Where much is masked there are few, and
to count on all diagonals is cheap: 512 diagonals are added at once (`native/recall_sift.h`).

The informative places are cut into groups of `GROUP`, the last of which has all that are left. A
diagonal is tried where it agrees with a group in at least `list_least_hits` places: so many that
about `BY_CHANCE` diagonals of the text reach it by chance.
"""

import math
from dataclasses import dataclass, fields
from functools import cache

import numpy as np
from numpy.typing import NDArray

from genodiff.memory.copying import Places, SeenWindow, weigh_diagonals
from genodiff.memory.numbers import MemoryNumbers
from genodiff.memory.tables import KmerTable, SampledTable
from genodiff.memory.text import NONE, PAD, Codes, MemoryText

GROUP = 32
BY_CHANCE = 500.0
AGREES = 0.3
"""The chance that two bases agree, where composition is uneven."""
LONGEST = 25_000_000
"""Places of the longest text that is sifted: about 30 ms a window at most, with AVX-512."""
LEAST_EFFORT = 5000
"""Diagonals of an effort (`Effort.scored`) below which sifting would cost more than the search."""
SPARSE = 0.55
"""The share of informative places above which seeds find as much."""
_SIFT_CHUNK = 1 << 20


def count_sparse(size: int, length: int, scored: int | None) -> int:
    """The most informative places of a window at which the diagonals of a text are sifted."""
    sifts = size <= LONGEST and (scored is None or scored >= LEAST_EFFORT)
    return int(SPARSE * length) if sifts else -1


@cache
def list_least_hits(size: int) -> NDArray[np.int64]:
    """(2 GROUP,): the least agreements of a group of so many places, for a text of `size`."""
    most = BY_CHANCE / max(size, 1)
    return np.array([find_least(n, most) for n in range(2 * GROUP)], np.int64)


def find_least(n: int, most: float) -> int:
    chance, least = 0.0, n + 1
    while least > 0:
        k = least - 1
        chance += math.comb(n, k) * AGREES**k * (1 - AGREES) ** (n - k)
        if chance > most:
            break
        least = k
    return least


def list_groups(tells: NDArray[np.bool_]) -> list[Places]:
    """The places of each group that is counted."""
    at = np.flatnonzero(tells)
    n = max(len(at) // GROUP, 1)
    return [at[GROUP * i : GROUP * (i + 1) if i < n - 1 else None] for i in range(n)]


def sift(text: MemoryText, codes: Codes, tells: NDArray[np.bool_]) -> Places:
    """The diagonals of a text that are worth a score, ascending."""
    least = list_least_hits(text.size)
    groups, found = list_groups(tells), []
    for first in range(1 - len(codes), text.size, _SIFT_CHUNK):
        diagonals = np.arange(first, min(first + _SIFT_CHUNK, text.size), dtype=np.int64)
        passes = np.zeros(len(diagonals), np.bool_)
        for group in groups:
            hits = np.zeros(len(diagonals), np.int64)
            for i in group.tolist():
                hits += text.codes[diagonals + i + PAD] == codes[i]
            passes |= hits >= least[len(group)]
        found.append(diagonals[passes])
    return np.concatenate(found)


FORETOLD = 0.55
"""A visible base of at least this evidence tells nothing of where the window is from."""
THRESHOLD = 104
"""Least score of a diagonal: 13 nats."""
PENALTY = 8
LEAST_SEEN = 3
CAP = 4000
"""Of a k-mer that stands at more places, only so many are tried, at equal distances."""
VERIFY = 4
"""Work of scoring a diagonal, in look-ups."""
CENTRES = 12
INDELS = (1, 2, 3, 4, 5, 6, 9, 12)
LANE = 16
_NEAR, _FAR = (11, 32), (9, 18)
_DENSE, _SPARSE = 0.45, 0.17
_CHUNK = 1 << 22


@dataclass(frozen=True)
class Effort:
    """How hard to search: diagonals scored on a strand (None: every one), diagonals kept on a
    strand, the most wild cards of a seed, the least odds (ln) of a diagonal that is kept.

    Where lanes have 32 or 64 bases, because much is masked, 2 or 4 times as many are scored.
    """

    scored: int | None = 25_000
    most: int = 2048
    wild: int = 8
    least_odds: float = -5.0


def is_effort(told: object) -> bool:
    """Whether values that were read are those of an `Effort`: its names, and numbers or null."""
    return (
        isinstance(told, dict)
        and told.keys() == {one.name for one in fields(Effort)}
        and all(x is None or type(x) in (int, float) for x in told.values())
    )


def find_informative(window: SeenWindow) -> NDArray[np.bool_]:
    """(L,): which places tell where the window is from."""
    return (window.codes < NONE) & (window.evidence < FORETOLD)


def choose_lane(informative: int, length: int) -> int:
    """Bases of a lane, by the share of informative places."""
    if informative > _DENSE * length:
        return LANE
    return 2 * LANE if informative > _SPARSE * length else 4 * LANE


def find_diagonals(
    text: MemoryText,
    table: KmerTable | SampledTable | None,
    window: SeenWindow,
    numbers: MemoryNumbers,
    effort: Effort,
) -> Places:
    """The diagonals of strand 0, ascending. With the turned window, those of strand 1."""
    tells = find_informative(window)
    if effort.scored is None:
        tried = np.arange(1 - len(window.codes), text.size, dtype=np.int64)
    elif isinstance(table, SampledTable) and tells.sum() <= count_sparse(
        text.size, len(tells), effort.scored
    ):
        tried = sift(text, window.codes, tells)
    else:
        assert table is not None
        tried = seek(table, text.size, window.codes, tells, effort)
    scores = score_diagonals(text, window, tells, tried)
    best = np.lexsort((tried, -scores))
    best = best[scores[best] >= THRESHOLD][: effort.most]
    kept = np.sort(tried[best])
    odds = weigh_diagonals(text, window, (kept, kept[:0]), numbers)
    kept, odds = kept[odds >= effort.least_odds], odds[odds >= effort.least_odds]
    centres = kept[np.lexsort((kept, -odds))][:CENTRES]
    centres = centres[np.isin(centres, kept[odds >= 0])]
    steps = np.array([*INDELS, *(-d for d in INDELS)] if numbers.shift else [], np.int64)
    near = (centres[:, None] + steps).ravel()
    near = near[(near > -len(window.codes)) & (near < text.size)]
    return np.union1d(kept, near)


def score_diagonals(
    text: MemoryText, window: SeenWindow, tells: NDArray[np.bool_], diagonals: Places
) -> NDArray[np.int64]:
    """The score of each diagonal, in eighths of a nat; places `without` count as mismatches."""
    length = len(window.codes)
    size = choose_lane(int(tells.sum()), length)
    scores = np.zeros(len(diagonals), np.int64)
    chunk = max(1, _CHUNK // length)
    for first in range(0, len(diagonals), chunk):
        d = diagonals[first : first + chunk]
        at = d[:, None] + np.arange(length)
        absent = (at >= window.without[0]) & (at < window.without[1])
        misses = ((text.codes[at + PAD] != window.codes) | absent) & tells
        for shift in range(8):  # the lanes of a diagonal begin with a byte of the text
            rows = np.flatnonzero(d % 8 == shift)
            near = _score_lanes(misses[rows], tells, shift, size, _NEAR)
            far = _score_lanes(misses[rows], tells, shift, 4 * LANE, _FAR) - PENALTY
            scores[first + rows] = np.maximum(near, far)
    return scores


def _score_lanes(
    misses: NDArray[np.bool_],
    tells: NDArray[np.bool_],
    shift: int,
    size: int,
    pay: tuple[int, int],
) -> NDArray[np.int64]:
    """The best run of lanes of each row; lanes of `size` bases, the first `shift` bases shorter."""
    edges = np.append(0, np.arange(size - shift, len(tells), size))
    seen = np.add.reduceat(tells.astype(np.int64), edges)
    missed = np.add.reduceat(misses.astype(np.int64), edges, axis=1)
    best = run = np.zeros(len(misses), np.int64)
    for value in (pay[0] * seen - pay[1] * missed).T:
        run = np.maximum(run + value, 0)
        best = np.maximum(best, run)
    return best


def order_seeds(tells: NDArray[np.bool_], k: int, wild: int) -> Places:
    """The first places of the words to look up, in their order."""
    n = max(len(tells) - k + 1, 0)
    before = np.concatenate(([0], np.cumsum(tells)))
    seen = (before[k:] - before[:n]) if n else np.zeros(0, np.int64)
    spread = ((np.arange(n, dtype=np.uint64) * np.uint64(2654435761)) & np.uint64(0xFFFFFFFF)) >> 8
    chosen = np.flatnonzero((seen >= LEAST_SEEN) & (k - seen <= wild))
    return chosen[np.lexsort((chosen, spread[chosen].astype(np.int64) & 0xFFFF, -seen[chosen]))]


def seek(
    table: KmerTable | SampledTable,
    size: int,
    codes: Codes,
    tells: NDArray[np.bool_],
    effort: Effort,
) -> Places:
    """The diagonals that seeds find, each once, ascending, until the effort is spent."""
    assert effort.scored is not None
    budget = effort.scored * (choose_lane(int(tells.sum()), len(tells)) // LANE)
    left, found, k = VERIFY * budget, set[int](), table.k
    for place in order_seeds(tells, k, effort.wild).tolist():
        told = tells[place : place + k]
        base = int((np.where(told, codes[place : place + k], 0) * 4 ** np.arange(k)[::-1]).sum())
        open_places = 2 * (k - 1 - np.flatnonzero(~told))
        for choice in range(4 ** len(open_places)):
            word = base
            for j, bits in enumerate(open_places.tolist()):
                word |= (choice >> (2 * j) & 3) << bits
            places = table.find_places(word)
            step = -(-len(places) // CAP) or 1
            for hit in places[::step].tolist():
                left -= 1
                if (d := hit - place) not in found:
                    found.add(d)
                    left -= VERIFY
            left -= 1
            if left <= 0:
                return np.array(sorted(found), np.int64)
    return np.array(sorted(found), np.int64)
