"""Intervals of a genome that a verb reads: rows of a BED file, or region strings.

One rule for strands holds everywhere. A row on `-` is read as its reverse complement. A row on `+`
or `.`, a row without a strand, and a region string are read on the forward strand.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from genodiff.alphabet import reverse_complement
from genodiff.errors import UsageError
from genodiff.io.annotation_rows import read_annotation
from genodiff.io.bed import read_bed
from genodiff.io.input_file import name_input
from genodiff.io.regions import hold_contigs, parse_region

log = logging.getLogger("genodiff")


class Place(NamedTuple):
    """contig[start:end] (0-based, half-open), its name, and `-` if read as its reverse complement.

    `line` is the line of its row; 0 for a region string.
    """

    contig: str
    start: int
    end: int
    name: str
    strand: str = "+"
    line: int = 0

    def cut(self, first: int, last: int) -> tuple[int, int]:
        """The interval of the contig that holds letters [first:last) in reading direction."""
        if self.strand == "-":
            return self.end - last, self.end - first
        return self.start + first, self.start + last

    def read(
        self, fetch: Callable[[str, int, int], bytes], first: int = 0, last: int | None = None
    ) -> bytes:
        """Read letters [first:last) in reading direction; `fetch` returns those of the + strand."""
        start, end = self.cut(first, self.end - self.start if last is None else last)
        return orient(fetch(self.contig, start, end), self.strand)


def orient(letters: bytes, strand: str) -> bytes:
    """Orient letters of the + strand along `strand`. Raises `DataError` for no letters of DNA."""
    turned = reverse_complement(letters) if strand == "-" else letters
    assert isinstance(turned, bytes)
    return turned


def list_places(
    contigs: Mapping[str, int],
    regions: Sequence[str] = (),
    bed: str | Path | None = None,
    *,
    features: Sequence[str] = (),
    along: str = "",
    over_origin: bool = False,
) -> list[Place]:
    """List the rows of a BED file, or the region strings, in order; empty if neither is given.

    With `features`, `bed` is GTF or GFF3, and its rows of these types are read. An interval without
    a name is called by its region, `chr1:1001-1200`, followed by `(-)` on that strand. `along`
    describes, for a verb that does not use strands, what it reads instead: rows on `-` are counted
    in the log, and returned as on `+`. With `over_origin` a row may end beyond a circular contig.
    Raises `UsageError` for a region outside the genome and for both, `DataError` for a bad file.
    """
    known = hold_contigs(contigs)
    if bed is None:
        return [_name(Place(*parse_region(text, known), "")) for text in regions]
    if regions:
        raise UsageError("--bed and --region exclude each other", fix="give one of them")
    if features:
        found = read_annotation(bed, known, features, over_origin=over_origin)
        rows = [Place(r.contig, r.start, r.end, r.name, r.strand, r.line) for r in found]
    else:
        columns = read_bed(bed, known).select("contig", "start", "end", "name", "strand", "line")
        rows = [
            Place(contig, start, end, name or "", "-" if strand == "-" else "+", line)
            for contig, start, end, name, strand, line in columns.iter_rows()
        ]
    turned = sum(one.strand == "-" for one in rows)
    if along and turned:
        said = f"{turned:,} row{'s' * (turned > 1)} on -"
        log.warning("%s: %s; the strand column is not used: %s", name_input(bed), said, along)
        rows = [one._replace(strand="+") for one in rows]
    return [_name(one) for one in rows]


def _name(place: Place) -> Place:
    if place.name not in ("", "."):
        return place
    turned = "(-)" if place.strand == "-" else ""
    return place._replace(name=f"{place.contig}:{place.start + 1}-{place.end}{turned}")
