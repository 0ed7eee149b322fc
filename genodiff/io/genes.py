"""Genes and other features that are drawn below tracks and maps: where they are, and their exons.

Read are GFF3, GTF, BED with 3 to 12 columns, GenBank and EMBL. A gene of several transcripts is the
one with the most coding bases, or else the most bases.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from genodiff.errors import DataError
from genodiff.io.annotation_rows import AnnotationRow
from genodiff.io.features import NAMES
from genodiff.io.genbank import FlatRecord
from genodiff.io.input_file import name_input, was_cut
from genodiff.io.regions import find_contig, refuse_contigs, warn_of_contigs
from genodiff.io.transcript_model import BEYOND, Part, Transcript
from genodiff.io.transcript_rows import STRANDS, is_of_gene, join_transcripts
from genodiff.io.transcripts import is_of_record, list_record, read_blocks, read_entries

log = logging.getLogger("genodiff")

_FORMATS = "GFF3, GTF, BED or GenBank"
_BEYOND = "%s: %s genes end beyond their contig; is it the annotation of this genome?"
_WHOLE = {
    "region", "chromosome", "contig", "scaffold", "supercontig", "source", "biological_region",
    "databank_entry",
}  # fmt: skip
"""Types of rows that are no genes but the contig, or a part of it."""


class Gene(NamedTuple):
    """A feature at contig[start:end], 0-based and half-open; `strand` is 1, -1, or 0 for none.

    `exons` and `coding` are parts of it, in the order of the contig.
    """

    contig: str
    start: int
    end: int
    strand: int
    name: str
    exons: tuple[Part, ...] = ()
    coding: tuple[Part, ...] = ()


def read_genes(
    path: str | Path, contigs: Mapping[str, int], wanted: Collection[str] | None = None
) -> list[Gene]:
    """The genes of a file on `contigs` (name → length), by contig and place.

    With `wanted`, only rows of these contigs are kept in memory. What lies beyond a contig's end is
    cut off and counted in the log. Raises `DataError` for a faulty row, and where there is no gene.
    """
    seen: dict[str, None] = {}
    found, beyond, shown = [], 0, name_input(path)
    kept = contigs if wanted is None else {name: contigs[name] for name in wanted}

    def keeps(contig: str) -> str | None:
        known = find_contig(contig, contigs, shown) or contig
        seen[known] = None
        return known if known in kept else None

    def of_bed(row: Sequence[Any], fields: Sequence[str]) -> Gene:
        contig, start, end, name, _, strand, _ = row
        title = "" if name in (None, ".") else name
        way = STRANDS.get(strand, 0)
        return Gene(contig, start, end, way, title, *read_blocks(path, row, fields))

    of_record = partial(_list_record, contigs=contigs, shown=shown)
    of_rows = partial(_read_annotation, contigs=contigs, shown=shown)
    for one in read_entries(path, _FORMATS, keeps, of_record, of_rows, of_bed):
        length = kept[one.contig]
        if one.start < length:
            found.append(one)
        beyond += length < one.end
    if beyond:
        log.warning(_BEYOND, shown, f"{beyond:,}")
    if not found:
        strangers = [name for name in seen if name not in kept]
        if contigs.keys() & strangers or was_cut(shown):
            return []
        if not strangers:
            raise DataError("has no gene", file=shown, fix=f"give {_FORMATS}")
        raise refuse_contigs(strangers[0], contigs, shown)
    warn_of_contigs(seen, contigs, shown)
    return sorted(found, key=lambda one: (one.contig, one.start, -one.end))


def pick_genes(genes: Iterable[Gene], contig: str, start: int, end: int) -> list[Gene]:
    """The genes that have a base in contig[start:end]."""
    return [one for one in genes if one.contig == contig and one.start < end and one.end > start]


def _read_annotation(
    rows: Iterator[AnnotationRow], contigs: Mapping[str, int], shown: str
) -> Iterator[Gene]:
    """Genes of rows of GFF3 or GTF, and other features as they stand there."""
    circular: set[str] = set()
    listed = list(rows)
    yield from draw_transcripts(join_transcripts(listed, contigs, circular), contigs, shown)
    for row in listed:
        if row.type not in _WHOLE and not is_of_gene(row):
            way, name = STRANDS.get(row.strand, 0), row.name or row.type
            length = contigs[row.contig]
            for a, b, _ in _fold(row.start, row.end, length, circular=row.contig in circular):
                yield Gene(row.contig, a, b, way, name, ((a, b),))


def draw_transcripts(
    found: Iterable[Transcript], contigs: Mapping[str, int], shown: str
) -> Iterator[Gene]:
    """The best transcript of each gene, each place of it by itself."""
    genes: dict[tuple[str, str], list[Transcript]] = {}
    listed = list(found)
    if beyond := sum(one.unknown == BEYOND for one in listed):
        log.warning(_BEYOND, shown, f"{beyond:,}")
    for one in listed:
        genes.setdefault((one.contig, one.gene), []).append(one)
    for (contig, name), some in genes.items():
        taken: list[Transcript] = []
        for one in sorted(some, key=_weigh, reverse=True):
            if not any(a < d and c < b for other in taken for c, d in other.spans
                       for a, b in one.spans):  # fmt: skip
                taken.append(one)
                yield from _draw(one, name.strip() if name[:1] != " " else "gene", contigs[contig])


def _draw(one: Transcript, name: str, length: int) -> Iterator[Gene]:
    going = any(b > length for _, b in one.spans)
    for start, end in one.spans:
        for low, high, shift in _fold(start, end, length, circular=going):
            exons, coding = (
                tuple(sorted((max(a - shift, low), min(b - shift, high)) for a, b, _ in some
                             if a - shift < high and low < b - shift))
                for some in (one.exons, one.coding)
            )  # fmt: skip
            ways = [way for a, b, way in one.exons if a - shift < high and low < b - shift]
            yield Gene(one.contig, low, high, ways[0] if ways else one.strand, name,
                       exons or ((low, high),), coding)  # fmt: skip


def _fold(start: int, end: int, length: int, *, circular: bool) -> list[tuple[int, int, int]]:
    """The parts of an interval, two across a circle's origin, and by how much each moves."""
    if not circular or end <= length:
        return [(start, end, 0)]
    behind = (max(start - length, 0), end - length, length)
    return [(start, length, 0), behind] if start < length else [behind]


def _weigh(one: Transcript) -> tuple[int, int]:
    """Coding bases, and bases of exons."""
    return (sum(b - a for a, b, _ in one.coding), sum(b - a for a, b, _ in one.exons))


def _list_record(record: FlatRecord, contigs: Mapping[str, int], shown: str) -> Iterator[Gene]:
    """Genes of a GenBank or EMBL record: the coding part of each, or what stands in its place."""
    circular: set[str] = set()
    yield from draw_transcripts(list_record(record, contigs, circular), contigs, shown)
    for feature in record.parsed.features:
        if feature.type in _WHOLE | {"exon", "intron"} or is_of_record(feature.type):
            continue
        name = next((found[0] for key in NAMES if (found := feature.qualifiers.get(key))), "")
        try:
            parts = [one for one in feature.location.parts if one.ref is None]
            places = sorted((int(one.start), int(one.end)) for one in parts)
        except TypeError:  # an unknown position
            continue
        groups = [places] if record.name not in circular else [[place] for place in places]
        for some in groups:
            if some:
                way = feature.location.strand or 0
                end = max(end for _, end in some)
                yield Gene(record.name, some[0][0], end, way, name or feature.type, tuple(some))
