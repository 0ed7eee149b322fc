"""The window around a variant: its two spellings with the same flanks, cut from a genome.

The variant stands in the middle. Both flanks have the same number of bases, (context − span) / 2
rounded down, so the other strand's window is the same window; where a contig ends, the other flank
has what is missing. The span is the longer spelling. Flanks keep at least half of the context, so
the window of a long indel is longer than the context.

Several alleles of one haplotype make one window, and their spans are scored together.

Where tracks read a contig: tiles, each in the middle of one window.

A contig that fits into one window is one tile. A longer one is cut into tiles of at most half a
context. Their number is odd, and their ends are rounded as those of their mirror images are, so the
tiles of the other strand are the same tiles. Each has a window of one context; at the ends of a
contig the window lies as near to the tile's middle as it can. So every base has at least a quarter
of the context on either side, except where the contig ends.

The tiles depend on the contig and the context alone. What a base is given is then the same whatever
regions were asked for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from genodiff.alphabet import Alphabet
from genodiff.errors import DataError, UsageError
from genodiff.io.variants import Allele
from genodiff.jobs.shards import Shard
from genodiff.scoring.allele_score import LONGEST_SPAN, TOO_LONG
from genodiff.scoring.spelling_pair import SpellingPair

_OTHER_GENOME = "give the genome that the variants are of"


class Contigs(Protocol):
    """Random access to a genome, as `io.faidx.Genome` gives it."""

    @property
    def contigs(self) -> Mapping[str, int]: ...

    def fetch(self, contig: str, start: int, end: int, /) -> bytes: ...


class HeldContigs(NamedTuple):
    """A genome in memory."""

    letters: Mapping[str, bytes]

    @property
    def contigs(self) -> dict[str, int]:
        """The length of each contig."""
        return {name: len(letters) for name, letters in self.letters.items()}

    def fetch(self, contig: str, start: int, end: int) -> bytes:
        """The letters of contig[start:end]."""
        return self.letters[contig][start:end]


class CutWindow(NamedTuple):
    """contig[start:end] of the reference (0-based, half-open) in two spellings."""

    contig: str
    start: int
    end: int
    pair: SpellingPair


class UnscorableError(DataError):
    """A variant that has no score; `reason` is one word of a table of results."""

    def __init__(self, reason: str, what: str, fix: str) -> None:
        super().__init__(what, fix=fix)
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.reason, self.what, self.fix)


def place_window(first: int, last: int, width: int, context: int, length: int) -> tuple[int, int]:
    """Start and end of the window of a contig of `length` bases around first:last.

    `width` is how many bases the longer spelling has there.
    """
    flank = max(context - width, context // 2, 0) // 2
    left, right = first, length - last
    start = first - min(left, flank + max(0, flank - right))
    end = last + min(right, flank + max(0, flank - left))
    return start, end


def cut_window(
    genome: Contigs,
    alphabet: Alphabet,
    alleles: Sequence[Allele],
    context: int,
    longest: int = LONGEST_SPAN,
) -> CutWindow:
    """The window of one allele, or of several of one haplotype.

    Raises `UnscorableError` for alleles that cannot be scored: on several contigs or overlapping, a
    contig that is not there, a reference that disagrees, a letter that is no base, or more than
    the `longest` bases.
    """
    some = sorted(alleles, key=lambda one: (one.start, one.start + len(one.ref)))
    contig = some[0].chrom
    _check(genome, some)
    first, last = some[0].start, some[-1].start + len(some[-1].ref)
    grown = sum(len(one.alt) - len(one.ref) for one in some)
    width = max(last - first, last - first + grown)
    if width > longest:
        what = f"{width:,} bases differ, more than {longest:,}"
        raise UnscorableError(TOO_LONG, what, "score shorter variants, or give --longest")
    start, end = place_window(first, last, width, context, genome.contigs[contig])
    letters = genome.fetch(contig, start, end)
    ref: list[bytes] = []  # stretches: those that both spellings have, and in turn the alleles
    alt: list[bytes] = []
    at = start
    for one in some:
        shared = letters[at - start : one.start - start]
        at = one.start + len(one.ref)
        _compare_reference(letters[one.start - start : at - start], one)
        ref += [shared, one.ref.encode()]
        alt += [shared, one.alt.encode()]
    ref.append(letters[at - start :])
    alt.append(letters[at - start :])
    differs = np.arange(len(ref)) % 2 == 1
    ref_ids, alt_ids = (alphabet.encode(b"".join(parts)) for parts in (ref, alt))
    ref_span, alt_span = (np.repeat(differs, list(map(len, parts))) for parts in (ref, alt))
    return CutWindow(contig, start, end, SpellingPair(ref_ids, alt_ids, ref_span, alt_span))


def check_alleles(genome: Contigs, some: Sequence[Allele]) -> None:
    """Raises `UnscorableError` as `cut_window` does; `some` are in the order of the contig."""
    _check(genome, some)
    for one in some:
        _compare_reference(genome.fetch(one.chrom, one.start, one.end), one)


def _compare_reference(there: bytes, allele: Allele) -> None:
    if there.upper() != allele.ref.encode():
        what = f"the reference has {there.decode('latin-1')}, not {allele.ref}"
        raise UnscorableError("ref_mismatch", what, _OTHER_GENOME)


def _check(genome: Contigs, some: Sequence[Allele]) -> None:
    contig = some[0].chrom
    length = genome.contigs.get(contig)
    if length is None:
        raise UnscorableError("unknown_contig", f"no contig '{contig}'", _OTHER_GENOME)
    at = 0
    for one in some:
        if one.chrom != contig or one.start < at:
            what = "alleles of one haplotype overlap"
            raise UnscorableError("overlap", what, "give alleles that it can have")
        at = one.start + len(one.ref)
        if at > length:
            what = f"{one.start + 1}-{at} is outside {contig} (length {length})"
            raise UnscorableError("outside_contig", what, _OTHER_GENOME)
        if set(one.ref + one.alt) - set("ACGT"):
            what = f"{one.ref}>{one.alt} has a letter that is no base"
            raise UnscorableError("ambiguous_base", what, "give A, C, G and T")


class TrackPiece(NamedTuple):
    """The bases [start, end) of a contig, 0-based, which stand in the tile [first, last)."""

    contig: str
    first: int
    last: int
    start: int
    end: int


def count_tiles(length: int, context: int, most: int | None = None) -> int:
    """Into how many tiles a contig is cut, of at most so many bases each (half a window)."""
    if length <= context:
        return 1
    return -(-length // (most or context // 2)) | 1


def find_bound(length: int, tiles: int, number: int) -> int:
    """Where tile `number` begins; that of `tiles` is the contig's end."""
    before, rest = divmod(length * number, tiles)
    return before + (rest > 0 and 2 * number < tiles)


def find_tile(length: int, context: int, base: int, most: int | None = None) -> tuple[int, int]:
    """The tile [first, last) that a base stands in."""
    tiles = count_tiles(length, context, most)
    number = _find_number(length, tiles, base)
    return find_bound(length, tiles, number), find_bound(length, tiles, number + 1)


def _find_number(length: int, tiles: int, base: int) -> int:
    number = min(base * tiles // length, tiles - 1)
    while find_bound(length, tiles, number) > base:
        number -= 1
    while find_bound(length, tiles, number + 1) <= base:
        number += 1
    return number


def cut_pieces(
    intervals: Iterable[tuple[str, int, int]],
    contigs: dict[str, int],
    context: int,
    most: int | None = None,
) -> Iterator[TrackPiece]:
    """The intervals, each cut at the ends of tiles."""
    for contig, start, end in intervals:
        at = start
        while at < end:
            first, last = find_tile(contigs[contig], context, at, most)
            yield TrackPiece(contig, first, last, at, min(last, end))
            at = last


def count_pieces(
    interval: tuple[str, int, int],
    contigs: dict[str, int],
    context: int,
    most: int | None = None,
) -> int:
    """How many pieces an interval has, without cutting it."""
    contig, start, end = interval
    length = contigs[contig]
    tiles = count_tiles(length, context, most)
    first, last = (_find_number(length, tiles, base) for base in (start, end - 1))
    return last - first + 1


def place_tile(piece: TrackPiece, context: int, length: int) -> tuple[int, int]:
    """The window [start, end) of the piece's tile."""
    width = piece.last - piece.first
    return place_window(piece.first, piece.last, width, context, length)


def merge_intervals(intervals: Iterable[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """The bases of all intervals, each once, by the contig's name and the start."""
    merged: list[tuple[str, int, int]] = []
    # By the bytes of the name, as the index of a bigWig has it.
    for contig, start, end in sorted(intervals, key=lambda one: (one[0].encode(), *one[1:])):
        if start == end:
            continue
        if merged and merged[-1][0] == contig and start <= merged[-1][2]:
            merged[-1] = (contig, merged[-1][1], max(end, merged[-1][2]))
        else:
            merged.append((contig, start, end))
    return merged


def plan_pieces(
    contigs: dict[str, int],
    wanted: Iterable[tuple[str, int, int]],
    context: int,
    shard: Shard | None,
    most: int | None = None,
) -> tuple[list[tuple[str, int, int]], tuple[int, int]]:
    """The disjoint intervals of a request, and which of their pieces [first, last) are a shard's.

    Raises `UsageError` for a shard that has nothing.
    """
    intervals = merge_intervals(wanted)
    total = sum(count_pieces(one, contigs, context, most) for one in intervals)
    cut = (0, total) if shard is None else shard.cut(total)
    if shard is not None and cut[0] == cut[1]:
        what = f"--shard {shard.number}/{shard.of} has none of {total:,} pieces"
        raise UsageError(what, fix="give fewer shards")
    return intervals, cut


def count_bases(intervals: Sequence[tuple[str, int, int]]) -> int:
    """How many bases disjoint intervals have."""
    return sum(end - start for _, start, end in intervals)
