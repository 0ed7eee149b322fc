"""Places of a genome that a verb reads: the rows of a BED file, or region strings.

One rule of strands holds wherever a place is read. A row on `-` is read as its reverse complement.
A row on `+` or `.`, a row without a strand, and a region string are read as they stand.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    """contig[start:end] (0-based, half-open), its name, and `-` if it is read from the other end.

    `line` is that of its row; 0 of a region string.
    """

    contig: str
    start: int
    end: int
    name: str
    strand: str = "+"
    line: int = 0

    def cut(self, first: int, last: int) -> tuple[int, int]:
        """The interval of the contig that holds letters [first:last) of the place as it is read."""
        if self.strand == "-":
            return self.end - last, self.end - first
        return self.start + first, self.start + last

    def read(
        self, fetch: Callable[[str, int, int], bytes], first: int = 0, last: int | None = None
    ) -> bytes:
        """Letters [first:last) of the place as it is read; `fetch` gives those of the + strand."""
        start, end = self.cut(first, self.end - self.start if last is None else last)
        return orient(fetch(self.contig, start, end), self.strand)


def orient(letters: bytes, strand: str) -> bytes:
    """Letters of the + strand as `strand` reads them. Raises `DataError` for no DNA on `-`."""
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
    """The rows of a BED file, or the region strings, in their order; none where neither is given.

    With `features`, `bed` is GTF or GFF3, and its rows of these types are read. A place without a
    name has that of its region, `chr1:1001-1200`, with `(-)` behind it on that strand. `along` says
    what a verb that does not use strands reads in their place: rows on `-` are counted in the log,
    and are given as on `+`. With `over_origin` a row may end beyond a contig that goes round.
    Raises `UsageError` for a region outside the genome and for both at once, `DataError` for a
    faulty file.
    """
    known = hold_contigs(contigs)
    if bed is None:
        return [_name(Place(*parse_region(text, known), "")) for text in regions]
    if regions:
        raise UsageError("--bed and --region exclude each other", fix="give one of them")
    rows = list(_rows(bed, known, features, over_origin))
    turned = sum(one.strand == "-" for one in rows)
    if along and turned:
        said = f"{turned:,} row{'s' * (turned > 1)} on -"
        log.warning("%s: %s; the strand column is not used: %s", name_input(bed), said, along)
        rows = [one._replace(strand="+") for one in rows]
    return [_name(one) for one in rows]


def _rows(
    bed: str | Path, contigs: dict[str, int], features: Sequence[str], over_origin: bool
) -> Iterator[Place]:
    if features:
        for one in read_annotation(bed, contigs, features, over_origin=over_origin):
            yield Place(one.contig, one.start, one.end, one.name, one.strand, one.line)
        return
    columns = read_bed(bed, contigs).select("contig", "start", "end", "name", "strand", "line")
    for contig, start, end, name, strand, line in columns.iter_rows():
        yield Place(contig, start, end, name or "", "-" if strand == "-" else "+", line)


def _name(place: Place) -> Place:
    if place.name not in ("", "."):
        return place
    turned = "(-)" if place.strand == "-" else ""
    return place._replace(name=f"{place.contig}:{place.start + 1}-{place.end}{turned}")
