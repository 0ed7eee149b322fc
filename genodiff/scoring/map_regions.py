"""The regions of a map: of a genome by region strings or BED, or each sequence as a region."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import UsageError
from genodiff.io.bed import read_bed
from genodiff.io.faidx import Genome
from genodiff.io.regions import parse_region
from genodiff.io.sequences import Sequences, is_file, read_sequences
from genodiff.scoring.variant_windows import Contigs, HeldContigs

BASES = "ACGT"


class MapRegion(NamedTuple):
    """contig[start:end] (0-based, half-open) and its letters in upper case, N for any other."""

    contig: str
    start: int
    end: int
    name: str
    letters: str

    @property
    def columns(self) -> NDArray[np.int64]:
        """(L,): the place of each letter in ACGT, -1 where it is none of them."""
        return np.array([BASES.find(letter) for letter in self.letters], np.int64)

    @property
    def label(self) -> str:
        """The region as samtools writes it."""
        return f"{self.contig}:{self.start + 1:,}-{self.end:,}"

    @property
    def title(self) -> str:
        """The label, after the region's own name where it has one."""
        plain = (self.contig, name_place(self.contig, self.start, self.end))
        return self.label if self.name in plain else f"{self.name}, {self.label}"


def name_place(contig: str, start: int, end: int) -> str:
    """The name of a region that has none of its own."""
    return f"{contig}:{start + 1}-{end}"


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
    genome: Contigs,
    regions: Sequence[str] = (),
    bed: str | Path | None = None,
    *,
    longest: int,
) -> list[MapRegion]:
    """The regions, in their order; each contig where neither `regions` nor `bed` is given.

    The strand column of a BED file is not applied. Raises `UsageError` for a region of more than
    `longest` bases, and for both kinds at once; `DataError` for a faulty BED file.
    """
    contigs = dict(genome.contigs)
    if regions and bed is not None:
        raise UsageError("--bed and --region exclude each other", fix="give one of them")
    places: list[tuple[str, int, int, str]]
    if bed is not None:
        table = read_bed(bed, contigs).select("contig", "start", "end", "name")
        places = [(c, s, e, n or "") for c, s, e, n in table.iter_rows()]
    elif regions:
        places = [(*parse_region(text, contigs), "") for text in regions]
    else:
        places = [(contig, 0, length, contig) for contig, length in contigs.items()]
    for contig, start, end, _ in places:
        if end - start > longest:
            what = f"{contig}:{start + 1:,}-{end:,} has {end - start:,} bases"
            fix = f"give regions of {longest:,} or fewer (--region chr1:1,000-1,200)"
            raise UsageError(f"{what}, more than {longest:,}", fix=fix)
    return [
        MapRegion(c, s, e, name or name_place(c, s, e), _read_letters(genome, c, s, e))
        for c, s, e, name in places
    ]


def _read_letters(genome: Contigs, contig: str, start: int, end: int) -> str:
    letters = genome.fetch(contig, start, end).decode("latin-1").upper()
    return "".join(letter if letter in BASES else "N" for letter in letters)
