"""Where a window lies in the text of a far relative: regions first, then the diagonals in them.

At 60 to 70 % identity there is an insertion or deletion every 15 to 20 bases, so no diagonal tells
by itself that it is one. A window is searched in stretches of `STRETCH` places, on each strand.

Regions. Agreements are counted on all diagonals, as in the sift (`search.py`), in groups of
informative places. A group votes for the bins of `BIN` diagonals where one of them agrees with it
more often than by a chance of `BY_CHANCE`. Two bins side by side that most groups vote for are the
middle of a region of `WIDTH` diagonals; the `REGIONS` of a strand with most votes are looked into.
In a text above `LONGEST` the diagonals of the ordinary search vote in place of the groups.

Diagonals. The best chain of matches through a region may go on at any diagonal of it. In eighths
of a nat, a place pays MATCH, TRANSITION, TRANSVERSION or ABSENT, and what the evidence says of its
base beside a quarter; to go on at the same diagonal behind a break costs BREAK, at one within 4 or
within 32 NEAR and FAR, and at any of the region JUMP. The `ACCEPTED` best regions of a stretch are
taken, where the best chain has ACCEPT more than the choice of a region costs, ln of all loci over
WIDTH, and `NOISE` times that of the region in the middle of all that were looked into: what is
simple or repeated is like many. Of a region the diagonals are kept that a chain goes through which
has at most `WITHIN` less than the best.

The exact sum over all paths through these diagonals follows (`alignment.py`), where a copy begins
in the accepted regions with chance `near`, and their choice is paid once.

This file is the definition, in NumPy; `native/far.h` has it in C.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.kernels.library import call, is_loaded
from genodiff.memory.copying import Places, SeenWindow
from genodiff.memory.fast import stack_places, stack_windows
from genodiff.memory.search import LONGEST, find_informative, find_least, list_groups
from genodiff.memory.tables import Floats
from genodiff.memory.text import NONE, PAD, Codes, MemoryText

STRETCH, BIN, WIDTH = 1024, 128, 768
REGIONS, ACCEPTED = 8, 4
BY_CHANCE = 4e-4
MATCH, TRANSITION, TRANSVERSION, ABSENT = 8, -3, -10, -64
BREAK, NEAR, FAR, JUMP = 48, 60, 76, 128
LEAST, MOST = -24, 16
ACCEPT, NOISE, WITHIN = 34 * 8, 2, 72
PAYS = (MATCH, TRANSITION, TRANSVERSION, ABSENT, BREAK, NEAR, FAR, JUMP, ACCEPT, NOISE, WITHIN)
MOST_KEPT = 96
NEVER = -20_000
_CHUNK = 1 << 20

Scores = NDArray[np.int32]
Found = list[tuple[Places, Places]]


LEAST_VOTES = np.array([find_least(n, BY_CHANCE) for n in range(64)], np.int64)
"""(64,): the least agreements of a group of so many places for a vote."""


def count_votes(text: MemoryText, codes: Codes, tells: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """The groups of a stretch that vote for each bin, a bit each."""
    votes = np.zeros((text.size + STRETCH) // BIN + 2, np.uint64)
    for first in range(1 - len(codes), text.size, _CHUNK):
        d = np.arange(first, min(first + _CHUNK, text.size), dtype=np.int64)
        for bit, group in enumerate(list_groups(tells)):
            hits = np.zeros(len(d), np.int64)
            for i in group.tolist():
                hits += text.codes[d + i + PAD] == codes[i]
            bins = (d[hits >= LEAST_VOTES[len(group)]] + STRETCH) // BIN
            votes[np.unique(bins)] |= np.uint64(1 << bit)
    return votes


def count_found(text: MemoryText, diagonals: Places) -> NDArray[np.uint64]:
    """As `count_votes`, of diagonals that the ordinary search has found."""
    votes = np.zeros((text.size + STRETCH) // BIN + 2, np.uint64)
    bits = np.uint64(1) << np.arange(len(diagonals), dtype=np.uint64) % np.uint64(64)
    there = (diagonals > -STRETCH) & (diagonals < text.size)
    np.bitwise_or.at(votes, (diagonals[there] + STRETCH) // BIN, bits[there])
    return votes


def choose_regions(votes: NDArray[np.uint64]) -> Places:
    """The first diagonal of each region, most votes first."""
    count = np.bitwise_count(votes[:-1] | votes[1:]).astype(np.int64)
    chosen: list[int] = []
    for b in np.argsort(-count, kind="stable").tolist():
        if not count[b] or len(chosen) == REGIONS:
            break
        if all(abs(b - other) * BIN >= WIDTH // 2 for other in chosen):
            chosen.append(b)
    return (np.array(chosen, np.int64) + 1) * BIN - STRETCH - WIDTH // 2


def weigh_evidence(codes: Codes, evidence: Floats) -> NDArray[np.int16]:
    """What the evidence adds to the pay of each place."""
    told = np.clip(np.rint(8 * np.log(0.25 / evidence)), LEAST, MOST)
    return np.where(codes < NONE, told, 0).astype(np.int16)


def slide(values: Scores, reach: int) -> Scores:
    """The largest within reach of each."""
    wide = np.pad(values, reach, constant_values=NEVER)
    return np.lib.stride_tricks.sliding_window_view(wide, 2 * reach + 1).max(-1)


def sum_chains(pays: Scores) -> Scores:
    """(L, WIDTH): the best chain that ends at each place and diagonal."""
    out = np.empty_like(pays)
    last = broken = np.full(pays.shape[1], NEVER, np.int32)
    best = 0
    for i, pay in enumerate(pays):
        on = np.maximum(last, broken - BREAK)
        near = np.maximum(on, slide(on, 4) - NEAR)
        far = np.maximum(slide(on, 32) - FAR, max(best - JUMP, 0))
        broken = np.maximum(broken, last)
        out[i] = last = pay + np.maximum(near, far)
        best = max(best, int(last.max()))
    return out


def search_far(
    text: MemoryText, windows: Sequence[SeenWindow], found: Found | None = None
) -> tuple[list[SeenWindow], Found]:
    """Windows of one length with `n_near`, and the diagonals of each; `found`: those of the
    ordinary search, which vote where the text is too long for a sift.
    """
    votes = found if text.size > LONGEST else None
    if is_loaded() and len(windows):
        diagonals, regions = _find_in_c(text, windows, votes)
    else:
        told: Sequence[Any] = votes or [None] * len(windows)
        each = [find_far(text, *pair) for pair in zip(windows, told, strict=True)]
        diagonals, regions = [pair for pair, _ in each], [n for _, n in each]
    seen = [w._replace(n_near=WIDTH * n) for w, n in zip(windows, regions, strict=True)]
    return seen, diagonals


def find_far(
    text: MemoryText, window: SeenWindow, found: tuple[Places, Places] | None = None
) -> tuple[tuple[Places, Places], int]:
    """The diagonals of each strand, ascending, and how many regions they are in."""
    kept: list[list[Places]] = [[np.zeros(0, np.int64)], [np.zeros(0, np.int64)]]
    choice, n = 8 * math.log(max(window.n_loci / WIDTH, 1)), 0
    for begin in range(0, len(window.codes), STRETCH):
        here, tried = slice(begin, begin + STRETCH), []
        for strand, one in enumerate((window, window.turn())):
            if found is None:
                votes = count_votes(text, one.codes[here], find_informative(one)[here])
            else:
                votes = count_found(text, found[strand] + begin)
            for low in choose_regions(votes).tolist():
                pays = pay_region(text, one, here, low)
                before = sum_chains(pays)
                tried.append((int(before.max(initial=0)), strand, low, pays, before))
        tried.sort(key=lambda one: -one[0])
        noise = tried[REGIONS][0] if len(tried) > REGIONS else 0
        for best, strand, low, pays, before in tried[:ACCEPTED]:
            if best >= max(ACCEPT + choice, NOISE * noise):
                through = (before + sum_chains(pays[::-1])[::-1] - pays).max(0)
                kept[strand].append(low - begin + keep_diagonals(through, best))
                n += 1
    first, second = (np.unique(np.concatenate(one)) for one in kept)
    return (first, second), n


def pay_region(text: MemoryText, window: SeenWindow, here: slice, low: int) -> Scores:
    """(L, WIDTH): what each place of a stretch pays on each diagonal of a region."""
    x = window.codes[here][:, None]
    at = low + np.arange(WIDTH) + np.arange(len(x))[:, None]
    sources = text.codes[np.clip(at + PAD, 0, len(text.codes) - 1)]
    absent = (sources == NONE) | ((at >= window.without[0]) & (at < window.without[1]))
    differ = np.where((sources ^ x) == 2, TRANSITION, TRANSVERSION)
    pay = np.where(sources == x, MATCH, np.where(x == NONE, 0, differ))
    told = weigh_evidence(window.codes[here], window.evidence[here])
    return (np.where(absent, ABSENT, pay) + told[:, None]).astype(np.int32)


def keep_diagonals(through: Scores, best: int) -> Places:
    """Those of a region with a good chain through them."""
    kept = np.flatnonzero(through >= best)
    for within in range(WITHIN, 0, -8):
        some = np.flatnonzero(through >= best - within)
        if len(some) <= MOST_KEPT:
            return some
    return kept[:MOST_KEPT]


def _find_in_c(
    text: MemoryText, windows: Sequence[SeenWindow], found: Found | None
) -> tuple[Found, list[int]]:
    batch, length = len(windows), len(windows[0].codes)
    most = -(-length // STRETCH) * REGIONS * MOST_KEPT
    given, counts = stack_places(found or [])
    out = {
        "diagonals": np.zeros((batch, 2, most), np.int64),
        "counts": np.zeros((batch, 2), np.int64),
        "regions": np.zeros(batch, np.int64),
    }
    arrays = {
        **stack_windows(text, windows),
        "tells": np.stack([find_informative(w) for w in windows]).astype(np.uint8),
        "told": np.stack([weigh_evidence(w.codes, w.evidence) for w in windows]),
        "found": given,
        "found_counts": counts,
        "least_hits": LEAST_VOTES,
        "pays": np.array(PAYS, np.int64),
        **out,
    }
    call(
        "far", arrays, backward=False, batch=batch, L=length, size=text.size,
        plane_bytes=text.planes.shape[1], most=most, found_most=given.shape[2],
        sifts=found is None,
    )  # fmt: skip
    pairs = [
        (row[0, :a].copy(), row[1, :b].copy())
        for row, (a, b) in zip(out["diagonals"], out["counts"].tolist(), strict=True)
    ]
    return pairs, out["regions"].tolist()
