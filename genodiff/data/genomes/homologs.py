"""What held-out sequence shares with train, and what assemblies share with one another.

A tile of 1,024 bases of valid or test has a homolog in train when two of its sampled 24-mers (of 32
on average), and a twentieth of them, stand in train. Under the rule `cluster` such a tile and its
neighbours are left out of their split; under other rules their share is measured and told.

Valid is also compared with test, so that what a run is chosen by never holds what it is judged by.
"""

import logging
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array  # type: ignore[import-untyped]

from genodiff.data.genomes.dealing import Contig
from genodiff.data.kmers import SAMPLED, K, Sketch, Words, find_known, keep_distinct
from genodiff.data.splits import Rows

log = logging.getLogger("genodiff")

TILE = 1024
LEAST_HITS, LEAST_SHARE = 2, 0.05
_ALIKE = 0.5  # share of sampled k-mers from which two assemblies are reported
_CHUNK = 1 << 22

Ints = NDArray[np.int64]


class SplitSketch(NamedTuple):
    """The sampled k-mers of a split's intervals: hash, contig, place on the contig."""

    kmers: Words
    contig: Ints
    place: Ints


class HomologyCheck(NamedTuple):
    """What is left of the splits, and what was found."""

    rows: list[Rows]
    told: dict[str, Any]


def take_sketch(rows: Rows, contigs: list[Contig], sketches: list[Sketch]) -> SplitSketch:
    """The sampled k-mers that lie in these intervals, in their order."""
    starts = np.zeros(len(contigs), np.int64)  # flat start of each contig in its genome
    for number in range(1, len(contigs)):
        if contigs[number].genome == contigs[number - 1].genome:
            starts[number] = starts[number - 1] + contigs[number - 1].length
    empty = np.zeros(0, np.int64)
    parts: list[tuple[Words, Ints, Ints]] = [(np.zeros(0, np.uint64), empty, empty)]
    for contig, start, end in rows:
        kmers, places = sketches[contigs[contig].genome]
        a = np.searchsorted(places, starts[contig] + start)
        b = max(a, np.searchsorted(places, starts[contig] + end - K + 1))
        place = np.asarray(places[a:b]) - starts[contig]
        parts.append((np.asarray(kmers[a:b]), np.full(b - a, contig), place))
    return SplitSketch(*(np.concatenate([p[i] for p in parts]) for i in range(3)))


def find_in_splits(
    held: SplitSketch, others: list[Rows], contigs: list[Contig], sketches: list[Sketch]
) -> NDArray[np.bool_]:
    """Which of the held-out k-mers, alone in memory, stand in the intervals of other splits."""
    wanted = keep_distinct(held.kmers)
    hit = np.zeros(len(wanted), bool)
    for rows in others:
        for first in range(0, len(rows), 256):
            kmers = take_sketch(rows[first : first + 256], contigs, sketches).kmers
            for a in range(0, len(kmers), _CHUNK):
                some = kmers[a : a + _CHUNK]
                hit[np.searchsorted(wanted, some[find_known(some, wanted)])] = True
    return hit[np.searchsorted(wanted, held.kmers)]


def count_hits(tiles: Ints, found: NDArray[np.bool_]) -> tuple[Ints, NDArray[Any], NDArray[Any]]:
    """The distinct tiles, how many k-mers each has, and how many of these were found."""
    codes, where = np.unique(tiles, return_inverse=True)
    n = np.bincount(where, minlength=len(codes))
    return codes, n, np.bincount(where, found, len(codes))


def sum_bases(rows: Rows) -> int:
    """The bases of some intervals."""
    return sum(end - start for _, start, end in rows)


def leave_homologs_out(
    rows: list[Rows], contigs: list[Contig], strict: list[bool], sketches: list[Sketch]
) -> HomologyCheck:
    """Leave out of valid and test what they share with train (valid: or test), where `strict`.

    `rows` are the intervals of train, valid and test; `strict` says it of each genome. The shares
    that are told are of tiles, before anything was left out, of all genomes.
    """
    kept = [list(part) for part in rows]
    told: dict[str, Any] = {}
    for name, mine, others in (("test", 2, [rows[0]]), ("valid", 1, [rows[0], rows[2]])):
        held = take_sketch(rows[mine], contigs, sketches)
        found = find_in_splits(held, others, contigs, sketches)
        span = int(held.place.max(initial=0)) // TILE + 1
        codes, n, hits = count_hits(held.contig * span + held.place // TILE, found)
        bad = (hits >= LEAST_HITS) & (hits >= LEAST_SHARE * n)
        drop: dict[int, list[int]] = defaultdict(list)
        for code in codes[bad].tolist():
            c, t = divmod(code, span)
            if strict[contigs[c].genome]:
                drop[c].append(t)
        kept[mine] = cut_tiles(rows[mine], drop)
        bases, tiles = sum_bases(rows[mine]), round(float(bad.mean()), 4) if len(bad) else 0.0
        left = bases - sum_bases(kept[mine])
        told[name] = {"bases": bases, "shared_tiles": tiles, "left_out": left}
    return HomologyCheck(kept, told)


def cut_tiles(rows: Rows, drop: dict[int, list[int]]) -> Rows:
    """The intervals without these tiles and their neighbours."""
    kept: Rows = []
    for contig, start, end in rows:
        at = start
        for tile in sorted(drop.get(contig, ())):
            a, b = (tile - 1) * TILE, (tile + 2) * TILE
            if a > at:
                kept.append((contig, at, min(a, end)))
            at = max(at, b)
            if at >= end:
                break
        if at < end:
            kept.append((contig, at, end))
    return [row for row in kept if row[2] > row[1]]


def find_duplicates(
    genomes: list[str], contigs: list[Contig], digests: list[str], sketches: list[Sketch]
) -> list[dict[str, Any]]:
    """Contigs of equal sequence, and assemblies that share half of their k-mers.

    Of equal contigs each is told beside the first that has its sequence. Rows have `kind` ("contig"
    or "assembly"), `a`, `b`, `bases`, `containment` and `identity` (of assemblies an estimate).
    """
    rows: list[dict[str, Any]] = []
    first: dict[str, int] = {}
    for number, digest in enumerate(digests):
        known = first.setdefault(digest, number)
        if known != number:
            a, b = (f"{genomes[contigs[i].genome]}/{contigs[i].name}" for i in (known, number))
            rows.append(
                {"kind": "contig", "a": a, "b": b, "bases": contigs[number].length}
                | {"containment": 1.0, "identity": 1.0}
            )
    size = [0] * len(genomes)
    for contig in contigs:
        size[contig.genome] += contig.length
    for one, other, containment in compare_assemblies(sketches):
        small = min(one, other, key=lambda g: (size[g], g))
        rows.append(
            {"kind": "assembly", "a": genomes[one], "b": genomes[other], "bases": size[small]}
            | {"containment": round(containment, 4), "identity": round(containment ** (1 / K), 4)}
        )
    return rows


def compare_assemblies(sketches: list[Sketch], most: int = 1 << 20) -> list[tuple[int, int, float]]:
    """(a < b, share) of assemblies of which one has half of the other's k-mers, of a sample."""
    total = max(1, sum(len(s.kmers) for s in sketches))
    limit = np.uint64(int(int(SAMPLED) * min(1.0, most / total)))
    parts = [keep_distinct(np.asarray(s.kmers)[np.asarray(s.kmers) < limit]) for s in sketches]
    size = np.array([len(p) for p in parts])
    known = keep_distinct(np.concatenate([*parts, np.zeros(0, np.uint64)]))
    column = np.concatenate([np.searchsorted(known, p) for p in parts])
    ends = np.concatenate(([0], np.cumsum(size)))
    table = csr_array((np.ones(len(column), np.int32), column, ends), (len(parts), len(known)))
    found = []
    for a in range(len(parts)):
        shared = (table[[a]] @ table.T).tocoo()
        for b, n in zip(shared.coords[1].tolist(), shared.data.tolist(), strict=True):
            share = n / max(1, min(size[a], size[b]))
            if b > a and share >= _ALIKE and n >= 3:
                found.append((a, b, float(share)))
    return found
