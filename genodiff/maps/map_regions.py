"""The regions of a map: of a genome by region strings or BED, or each sequence as a region.

A row of BED on - is read as its reverse complement: its map runs in the row's direction, from the
last base of contig[start:end] to the first.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import UsageError
from genodiff.io.faidx import Genome
from genodiff.io.input_file import is_file
from genodiff.io.places import Place, list_places
from genodiff.io.sequences import Sequences, read_sequences
from genodiff.scoring.variant_windows import Contigs, HeldContigs

BASES = "ACGT"
_AS_N = bytes(c if chr(c) in BASES else ord("N") for c in range(256))
Interval = tuple[str, int, int]


def spell_letters(letters: bytes) -> str:
    """The letters in upper case, N for any that is no base."""
    return letters.upper().translate(_AS_N).decode()


def find_columns(letters: str) -> NDArray[np.int64]:
    """(L,): the place of each letter in ACGT, -1 where it is none of them."""
    table = np.full(256, -1, np.int64)
    table[list(BASES.encode())] = np.arange(len(BASES))
    return table[np.frombuffer(letters.encode(), np.uint8)]


class MapRegion(NamedTuple):
    """contig[start:end] (0-based, half-open) and its letters in upper case, N for any other.

    On the strand `-` the letters are those of the reverse complement.
    """

    contig: str
    start: int
    end: int
    name: str
    letters: str
    strand: str = "+"

    @property
    def positions(self) -> NDArray[np.int64]:
        """(L,): where each letter stands on the contig, from 0."""
        places = np.arange(self.start, self.end)
        return places[::-1] if self.strand == "-" else places

    @property
    def first(self) -> int:
        """The number of the first letter, from 1, for an axis; below 0 where numbers fall."""
        return -self.end if self.strand == "-" else self.start + 1

    @property
    def columns(self) -> NDArray[np.int64]:
        """(L,): the place of each letter in ACGT, -1 where it is none of them."""
        return find_columns(self.letters)

    @property
    def label(self) -> str:
        """The region as samtools writes it, and whether it is on -."""
        turned = " (-)" if self.strand == "-" else ""
        return f"{self.contig}:{self.start + 1:,}-{self.end:,}{turned}"

    @property
    def title(self) -> str:
        """The label, after the region's own name where it has one."""
        plain = (self.contig, self.label.replace(",", "").replace(" ", ""))
        return self.label if self.name in plain else f"{self.name}, {self.label}"


@contextmanager
def open_contigs(sequences: Sequences) -> Iterator[Contigs]:
    """Random access to a FASTA file, or to sequences in memory (see `read_sequences`)."""
    if is_file(sequences):
        if str(sequences) == "-":
            raise UsageError("maps need a FASTA file, not a stream", fix="give the file itself")
        with Genome(sequences) as genome:
            yield genome
        return
    yield HeldContigs({one.name: one.sequence for one in read_sequences(sequences)})


def list_map_regions(
    genome: Contigs, regions: Sequence[str] = (), bed: str | Path | None = None, *, longest: int
) -> list[MapRegion]:
    """The regions, in their order; each contig where neither `regions` nor `bed` is given.

    Raises `UsageError` for a region of more than `longest` bases, and for both kinds at once;
    `DataError` for a faulty BED file.
    """
    if bed is not None or regions:
        places = list_places(genome.contigs, regions, bed)
    else:
        places = [Place(contig, 0, length, contig) for contig, length in genome.contigs.items()]
    for contig, start, end, *_ in places:
        if end - start > longest:
            what = f"{contig}:{start + 1:,}-{end:,} has {end - start:,} bases"
            fix = f"give regions of {longest:,} or fewer (--region chr1:1,000-1,200)"
            raise UsageError(f"{what}, more than {longest:,}", fix=fix)
    return [
        MapRegion(*one[:4], spell_letters(one.read(genome.fetch)), one.strand) for one in places
    ]


def list_intervals(
    genome: Contigs, regions: Sequence[str] = (), bed: str | Path | None = None
) -> list[Interval]:
    """The intervals (0-based, half-open) as they are asked for; all contigs where none is.

    The strand of a row is not used: tracks run along the genome. Raises `UsageError` for a region
    outside the genome and for both kinds at once, `DataError` for a faulty BED file.
    """
    if bed is None and not regions:
        return [(contig, 0, length) for contig, length in genome.contigs.items() if length]
    along = "tracks run along the genome"
    return [one[:3] for one in list_places(genome.contigs, regions, bed, along=along)]
