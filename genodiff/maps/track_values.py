"""What tracks say of each base, from p(A), p(C), p(G) and p(T) given all others.

    entropy       H = −Σ p log2 p, in bits, 0 to 2
    information   R = 2 − H
    logo          p · R for each letter: the heights of a sequence logo, which sum to R
    surprisal     −log2 p(reference), in bits

Logos: Schneider and Stephens 1990, without their correction for small samples. A base that is not
A, C, G or T has no value, which is NaN in arrays.

Tracks of what relatives say, beside those of any model.

    relatives      2 − H bits of what relatives alone say of a base, the network being left out
    agree          the share of the votes that have the reference base (`memory/tree.py`)
    differ         the share that have another; what is left to 1 is where nothing stands over it
    relative_NAME  the probability that the relative has the reference base, minus that it has
                   another, from −1 to 1; near 0 where nothing of it aligns

Each place is told by all other places of its window.

Values of files, drawn below a model's own tracks: coverage, or what `genodiff predict` wrote. A
file is read whole, and what of it lies in the intervals is kept. Nothing of it goes into files of
tracks: it is drawn on the page and the picture alone.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.io.value_tracks import SUFFIX, read_values
from genodiff.jobs.options import name_tracks
from genodiff.maps.map_regions import BASES, find_columns, spell_letters
from genodiff.scoring.variant_windows import Contigs, TrackPiece

Chances = NDArray[np.float32]
"""(bases, 4): p(A), p(C), p(G), p(T); NaN where the reference has no base. With relatives there are
the columns of `name_related` beside them."""

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
    def label(self) -> str:
        """The interval as samtools writes it."""
        return f"{self.contig}:{self.start + 1:,}-{self.end:,}"

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


def _take_column(name: str, column: int, one: BaseTracks) -> Track:
    found: Track = getattr(one, name)[:, column]
    return found


def _list_kinds() -> dict[str, TrackKind]:
    kinds = {}
    for name, label, highest in (
        ("p", "Probability of {} given all other bases", 1),
        ("logo", "Height of {}: its probability times information, in bits", 2),
    ):
        for column, base in enumerate(BASES):
            take, colour = partial(_take_column, name, column), _COLOURS[column]
            kinds[f"{name}_{base}"] = TrackKind(label.format(base), (0, highest), colour, take)
    for name, label, highest, colour in (
        ("entropy", "Entropy of the base given all others", 2, "92,102,112"),
        ("information", "Information of the base given all others", 2, "11,99,176"),
        ("surprisal", "Surprisal of the reference base", 8, "180,83,11"),
    ):
        kinds[name] = TrackKind(f"{label}, in bits", (0, highest), colour, attrgetter(name))
    return kinds


TRACKS: dict[str, TrackKind] = _list_kinds()
"""The tracks of any model."""


def find_information(chances: NDArray[np.floating]) -> NDArray[np.float64]:
    """2 − H bits of each row of chances (..., 4); NaN stays NaN."""
    p = chances.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * np.log2(p), np.where(np.isnan(p), np.nan, 0.0))
    found: NDArray[np.float64] = np.clip(2 + terms.sum(-1), 0, 2)
    return found


def read_letters(genome: Contigs, contig: str, start: int, end: int) -> str:
    """The letters of contig[start:end] in upper case, N for any that is no base."""
    return spell_letters(genome.fetch(contig, start, end))


def make_blocks(
    genome: Contigs, pieces: Iterable[tuple[TrackPiece, Chances]], related: Sequence[str] = ()
) -> Iterator[BaseTracks]:
    """The tracks of pieces that follow one another, neighbours together; memory holds one block.

    `related` are the names of the columns beside the four chances.
    """
    held: list[tuple[TrackPiece, Chances]] = []
    for piece, p in pieces:
        if held:
            (first, _), (last, _) = held[0], held[-1]
            follows = (last.contig, last.end) == (piece.contig, piece.start)
            if not follows or last.end - first.start >= _BLOCK:
                yield _join(genome, held, related)
                held = []
        held.append((piece, p))
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
        letters, p = "".join(one.letters for one in held), np.concatenate([one.p for one in held])
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


def count_tracks(blocks: Iterable[BaseTracks]) -> dict[str, Any]:
    """The bases of all blocks, how many were read, and the means over those, 0 without any."""
    bases = read = 0
    information = surprisal = 0.0
    for one in blocks:
        bases += len(one.letters)
        read += int(one.known.sum())
        information += float(np.nansum(one.information, dtype=np.float64))
        surprisal += float(np.nansum(one.surprisal, dtype=np.float64))
    return {
        "bases": bases, "read": read,
        "mean_information_bits": round(information / max(read, 1), 6),
        "mean_surprisal_bits": round(surprisal / max(read, 1), 6),
    }  # fmt: skip


MOST_STRIPS = 24
_NOT_SAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_SAME, _OTHER = "64,110,60", "150,60,60"


def name_related(told: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The names of the columns, as `RelatedReader.read_columns` gives them, of what an output says
    of a model's relatives; none without relatives.
    """
    return () if told is None else ("relatives", "agree", "differ", *_name_genomes(told))


def _name_genomes(told: Mapping[str, Any]) -> list[str]:
    names: list[str] = []
    for number, one in enumerate(told["genomes"], 1):
        name = f"relative_{_NOT_SAFE.sub('_', one['name'])}"
        names.append(f"{name}_{number}" if name in names else name)
    return names


def list_kinds(told: Mapping[str, Any] | None) -> TrackKinds:
    """All tracks of a model with these relatives, by the names of their files."""
    if told is None:
        return TRACKS
    kinds = dict(TRACKS)
    rows = [
        ("relatives", "Information of related genomes alone, in bits", (0, 2), _SAME),
        ("agree", "Share of votes for the reference base", (0, 1), _SAME),
        ("differ", "Share of votes for another base", (0, 1), _OTHER),
    ]
    for name, one in zip(_name_genomes(told), told["genomes"], strict=True):
        label = f"{one['name']}: P(reference base) - P(another base), 0 where unaligned"
        rows.append((name, label, (-1, 1), _SAME))
    for name, label, limits, colour in rows:
        kinds[name] = TrackKind(label, limits, colour, partial(_take, name))
    return kinds


class DrawnTrack(NamedTuple):
    """A track on a page or picture below the model's own; a strip is of one relative."""

    name: str
    title: str
    limits: tuple[float, float]
    is_strip: bool


def list_drawn(told: Mapping[str, Any]) -> list[DrawnTrack]:
    """Those that a page draws; `told` is what the sidecar says. Of many relatives the first.

    Beside them are the names and limits of values of other files.
    """
    beside = [DrawnTrack(name, name, limits, False) for name, limits in told.get("beside", ())]
    relatives = told.get("relatives")
    if relatives is None:
        return beside
    strips = [
        DrawnTrack(name, one["name"], (-1, 1), True)
        for name, one in zip(_name_genomes(relatives), relatives["genomes"], strict=True)
    ]
    both = [("relatives", "relatives, bits", (0, 2)), ("agree", "agree", (0, 1))]
    return [*(DrawnTrack(*one, False) for one in both), *beside, *strips[:MOST_STRIPS]]


def _take(name: str, one: BaseTracks) -> Track:
    return one.related[name]


PREDICTED_GENES = "labels.gff3"
_ROUNDED = 1e-3  # by which a sum of chances may be above 1


class ValueRow(NamedTuple):
    """Values of one file: its name, the ends of its scale, and (L,) of each interval."""

    name: str
    limits: tuple[float, float]
    values: tuple[NDArray[np.float32], ...]


def find_tracks(words: Sequence[str]) -> dict[str, str]:
    """Files by name, of NAME=FILE, and of folders that `genodiff predict` wrote, all their bigWigs.

    Raises `UsageError` for a name that comes twice.
    """
    found = []
    for word in words:
        files = sorted(Path(word).glob(f"*{SUFFIX}")) if Path(word).is_dir() else []
        found += [f"{one.stem}={one}" for one in files] or [word]
    return name_tracks(found)


def find_genes(words: Sequence[str]) -> str | None:
    """The file of genes that a folder of `genodiff predict` has; None where none has a gene."""
    for word in words:
        file = Path(word) / PREDICTED_GENES
        if file.exists():
            with file.open(encoding="utf-8") as lines:
                if any(not line.startswith("#") for line in lines):
                    return str(file)
    return None


def read_rows(
    tracks: Mapping[str, str], contigs: Mapping[str, int], intervals: Sequence[tuple[str, int, int]]
) -> list[ValueRow]:
    """What of the files lies in the intervals. Raises `DataError` as `read_values`."""
    rows = []
    for name, path in tracks.items():
        held = read_values(path, contigs)
        values = tuple(
            held[contig][start:end] if contig in held else np.full(end - start, np.nan, np.float32)
            for contig, start, end in intervals
        )
        most = max((float(np.nanmax(one, initial=0.0)) for one in values), default=0.0)
        least = min((float(np.nanmin(one, initial=0.0)) for one in values), default=0.0)
        rows.append(ValueRow(name, (least, max(1.0, math.ceil(most - _ROUNDED))), values))
    return rows
