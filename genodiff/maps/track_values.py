"""What tracks say of each base, from p(A), p(C), p(G) and p(T) given all others.

    entropy       H = −Σ p log2 p, in bits, 0 to 2
    information   R = 2 − H
    logo          p · R for each letter: the heights of a sequence logo, which sum to R
    surprisal     −log2 p(reference), in bits

Logos: Schneider and Stephens 1990, without their correction for small samples. A base that is not
A, C, G or T has no value, which is NaN in arrays. What relatives say is in `related_tracks.py`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.maps.map_regions import BASES
from genodiff.scoring.track_tiles import TrackPiece
from genodiff.scoring.variant_windows import Contigs

Chances = NDArray[np.float32]
"""(bases, 4): p(A), p(C), p(G), p(T); NaN where the reference has no base. With relatives there are
the columns of `related_tracks.py` beside them."""

Track = NDArray[np.float32]
"""(L,), NaN where there is no value."""

_BLOCK = 1 << 14  # bases that are written together, about
_LEAST = np.finfo(np.float32).tiny  # a chance of 0 would have no logarithm


@dataclass(frozen=True)
class BaseTracks:
    """The tracks of contig[start:end], 0-based.

    `letters` are those of the reference, N for any that is no base. `p` (L, 4) are the chances of
    A, C, G and T given all other bases. `related` are the tracks of a model's relatives by name,
    (L,) each; none without relatives.
    """

    contig: str
    start: int
    letters: str
    p: Chances
    related: Mapping[str, Track] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """The last base + 1."""
        return self.start + len(self.letters)

    @property
    def known(self) -> NDArray[np.bool_]:
        """(L,): where there are values."""
        return ~np.isnan(self.p[:, 0])

    @cached_property
    def information(self) -> Track:
        """(L,), in bits: 2 − entropy."""
        return find_information(self.p).astype(np.float32)

    @cached_property
    def entropy(self) -> Track:
        """(L,), in bits."""
        return (2 - find_information(self.p)).astype(np.float32)

    @cached_property
    def logo(self) -> NDArray[np.float32]:
        """(L, 4), in bits: the height of each letter, p times information."""
        return (self.p * find_information(self.p)[:, None]).astype(np.float32)

    @cached_property
    def surprisal(self) -> Track:
        """(L,), in bits: −log2 of the chance of the reference base."""
        columns = find_columns(self.letters)
        chance = self.p[np.arange(len(columns)), np.maximum(columns, 0)].astype(np.float64)
        bits = -np.log2(np.maximum(chance, _LEAST))
        return np.where(columns < 0, np.nan, bits).astype(np.float32)


class TrackKind(NamedTuple):
    """A track by what it is of; `limits` are the ends of its scale in a browser."""

    label: str
    limits: tuple[int, int]
    colour: str
    compute: Callable[[BaseTracks], Track]


TrackKinds = Mapping[str, TrackKind]
"""The tracks of an output, by the names of their files."""


_COLOURS = ("26,127,55", "11,92,173", "150,96,10", "179,38,30")  # those of the pages


def _take_chance(column: int, one: BaseTracks) -> Track:
    return one.p[:, column]


def _take_height(column: int, one: BaseTracks) -> Track:
    return one.logo[:, column]


def _list_kinds() -> dict[str, TrackKind]:
    kinds = {}
    for column, base in enumerate(BASES):
        kinds[f"p_{base}"] = TrackKind(
            f"Chance of {base} given all other bases", (0, 1), _COLOURS[column],
            partial(_take_chance, column),
        )  # fmt: skip
    for column, base in enumerate(BASES):
        kinds[f"logo_{base}"] = TrackKind(
            f"Height of {base}: its chance times information, in bits", (0, 2), _COLOURS[column],
            partial(_take_height, column),
        )  # fmt: skip
    for name, label, highest, colour in (
        ("entropy", "Entropy of the base given all others", 2, "92,102,112"),
        ("information", "Information of the base given all others", 2, "11,99,176"),
        ("surprisal", "Surprisal of the reference base", 8, "180,83,11"),
    ):
        kinds[name] = TrackKind(f"{label}, in bits", (0, highest), colour, attrgetter(name))
    return kinds


TRACKS: dict[str, TrackKind] = _list_kinds()
"""The tracks of any model."""


def find_columns(letters: str) -> NDArray[np.int64]:
    """(L,): the place of each letter in ACGT, -1 where it is none of them."""
    table = np.full(256, -1, np.int64)
    table[list(BASES.encode())] = np.arange(len(BASES))
    return table[np.frombuffer(letters.encode(), np.uint8)]


_AS_N = bytes(c if chr(c) in BASES else ord("N") for c in range(256))


def find_information(chances: NDArray[np.floating]) -> NDArray[np.float64]:
    """2 − H bits of each row of chances (..., 4); NaN stays NaN."""
    p = chances.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * np.log2(p), np.where(np.isnan(p), np.nan, 0.0))
    found: NDArray[np.float64] = np.clip(2 + terms.sum(-1), 0, 2)
    return found


def read_letters(genome: Contigs, contig: str, start: int, end: int) -> str:
    """The letters of contig[start:end] in upper case, N for any that is no base."""
    return genome.fetch(contig, start, end).upper().translate(_AS_N).decode()


def make_blocks(
    genome: Contigs, pieces: Iterable[tuple[TrackPiece, Chances]], related: Sequence[str] = ()
) -> Iterator[BaseTracks]:
    """The tracks of pieces that follow one another, neighbours together; memory holds one block.

    `related` are the names of the columns beside the four chances.
    """
    held: list[tuple[TrackPiece, Chances]] = []
    size = 0
    for piece, p in pieces:
        if held:
            last = held[-1][0]
            if last.contig != piece.contig or last.end != piece.start or size >= _BLOCK:
                yield _join(genome, held, related)
                held, size = [], 0
        held.append((piece, p))
        size += len(p)
    if held:
        yield _join(genome, held, related)


def join_intervals(
    blocks: Iterable[BaseTracks], intervals: Sequence[tuple[str, int, int]]
) -> Iterator[BaseTracks]:
    """The tracks of each interval as one; `blocks` are those of the intervals, in their order."""
    rest = iter(blocks)
    for contig, start, end in intervals:
        held: list[BaseTracks] = []
        while not held or held[-1].end < end:
            held.append(next(rest))
        letters = "".join(one.letters for one in held)
        p = np.concatenate([one.p for one in held])
        names = held[0].related
        related = {name: np.concatenate([one.related[name] for one in held]) for name in names}
        yield BaseTracks(contig, start, letters, p, related)


def _join(
    genome: Contigs, held: Sequence[tuple[TrackPiece, Chances]], related: Sequence[str]
) -> BaseTracks:
    first, last = held[0][0], held[-1][0]
    letters = read_letters(genome, first.contig, first.start, last.end)
    values = np.concatenate([p for _, p in held])
    columns = dict(zip(related, values[:, 4:].T, strict=True))
    return BaseTracks(first.contig, first.start, letters, values[:, :4], columns)


class TrackTally(NamedTuple):
    """How many bases have values, and the means of information and surprisal over them."""

    bases: int
    read: int
    information: float
    surprisal: float

    def describe(self) -> dict[str, Any]:
        """As a sidecar has it."""
        return {
            "bases": self.bases, "read": self.read,
            "mean_information_bits": round(self.information, 6),
            "mean_surprisal_bits": round(self.surprisal, 6),
        }  # fmt: skip


def count_tracks(blocks: Iterable[BaseTracks]) -> TrackTally:
    """The counts and means of all blocks; means are 0 where nothing was read."""
    bases = read = 0
    information = surprisal = 0.0
    for one in blocks:
        bases += len(one.letters)
        read += int(one.known.sum())
        information += float(np.nansum(one.information, dtype=np.float64))
        surprisal += float(np.nansum(one.surprisal, dtype=np.float64))
    return TrackTally(bases, read, information / max(read, 1), surprisal / max(read, 1))
