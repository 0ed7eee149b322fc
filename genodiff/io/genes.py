"""Genes and other features that are drawn below tracks and maps: where they are, and their exons.

Read are GFF3, GTF, BED with 3 to 12 columns, GenBank and EMBL. A gene of several transcripts is the
one with the most coding bases, or else the most bases.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from genodiff.errors import DataError
from genodiff.io.annotation_rows import AnnotationRow, is_annotation_row, parse_annotation_lines
from genodiff.io.bed import parse_bed_lines
from genodiff.io.features import NAMES
from genodiff.io.genbank import FlatRecord, open_text
from genodiff.io.input_file import name_input
from genodiff.io.planning import was_cut
from genodiff.io.regions import find_contig, refuse_contigs, warn_of_contigs
from genodiff.io.text_lines import is_bed_comment, read_whole
from genodiff.io.transcript_model import BEYOND, Part, Transcript
from genodiff.io.transcript_records import is_of_record, list_record
from genodiff.io.transcript_rows import STRANDS, is_of_gene, join_transcripts

log = logging.getLogger("genodiff")

Feature = TypeVar("Feature")
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
    cut off and counted in the log. Raises `DataError` for a faulty row, and where no gene is on any
    of the contigs.
    """
    strangers: dict[str, None] = {}
    found, beyond = [], 0
    kept = contigs if wanted is None else {name: contigs[name] for name in wanted}
    with open_text(path, "GFF3, GTF, BED or GenBank") as source:
        shown = source.shown
        genes: Iterator[Gene]
        if source.flat:
            listed = (_list_record(one, kept, strangers, shown) for one in source.records)
            genes = chain.from_iterable(listed)
        else:
            genes = _read_rows(source.lines, path, contigs, kept, strangers)
        for one in genes:
            one = one._replace(contig=find_contig(one.contig, contigs, shown) or one.contig)
            length = kept.get(one.contig, 0)
            if not length:
                strangers[one.contig] = None
            elif one.start < length:
                found.append(one)
            beyond += 0 < length < one.end
    if beyond:
        log.warning(_BEYOND, shown, f"{beyond:,}")
    if not found:
        if strangers.keys() & contigs.keys() or was_cut(shown):
            return []
        if not strangers:
            raise DataError("has no gene", file=shown, fix="give GFF3, GTF, BED or GenBank")
        raise refuse_contigs(next(iter(strangers)), contigs, shown)
    warn_of_contigs(strangers, contigs, shown)
    return sorted(found, key=lambda one: (one.contig, one.start, -one.end))


def pick_genes(genes: Iterable[Gene], contig: str, start: int, end: int) -> list[Gene]:
    """The genes that have a base in contig[start:end]."""
    return [one for one in genes if one.contig == contig and one.start < end and one.end > start]


def _read_rows(
    lines: Iterator[tuple[int, str]],
    path: str | Path,
    contigs: Mapping[str, int],
    wanted: Mapping[str, int],
    strangers: dict[str, None],
) -> Iterator[Gene]:
    """Genes of GFF3, GTF or BED; contigs that are not known are added to `strangers`."""

    def keeps(contig: str) -> str | None:
        known = find_contig(contig, contigs, name_input(path)) or contig
        if known in wanted:
            return known
        strangers[known] = None
        return None

    of_annotation = partial(_read_annotation, contigs=contigs, shown=name_input(path))
    return read_rows(lines, path, keeps, of_annotation, partial(read_blocks, path))


def read_rows(
    lines: Iterator[tuple[int, str]],
    path: str | Path,
    keeps: Callable[[str], str | None],
    of_annotation: Callable[[Iterator[AnnotationRow]], Iterator[Feature]],
    of_bed: Callable[[Sequence[Any], Sequence[str]], Feature],
) -> Iterator[Feature]:
    """What is made of the rows of GFF3 or GTF together, or of each row of BED.

    `keeps` is the genome's name of a contig that is wanted, None of another. Raises `DataError`
    for a faulty row.
    """
    for number, text in lines:
        line = text.rstrip(" \t")
        if is_bed_comment(line):
            continue
        if line.count("\t") < 2:
            what, fix = "is neither a row of GFF3 or GTF nor of BED", "separate columns by tabs"
            raise DataError(what, file=name_input(path), line=number, fix=fix)
        rest = chain([(number, text)], lines)
        if is_annotation_row(line):
            annotation = parse_annotation_lines(path, rest, lambda name: bool(keeps(name)))
            yield from of_annotation(
                row._replace(contig=keeps(row.contig) or "") for row in annotation
            )
        else:
            for row, fields in parse_bed_lines(path, rest):
                if named := keeps(row[0]):
                    yield of_bed((named, *row[1:]), fields)
        return


def read_blocks(path: str | Path, row: Sequence[Any], fields: Sequence[str]) -> Gene:
    """The gene of a row of BED: its blocks are the exons, what is thick of them is coding."""
    contig, start, end, name, _, strand, number = row
    exons: tuple[Part, ...] = ((start, end),)
    coding: tuple[Part, ...] = ()
    if len(fields) >= 12:
        words = [fields[6:8], fields[9:10], *(at.strip(",").split(",") for at in fields[10:12])]
        (left, right), (n,), sizes, starts = (
            [-1 if (value := read_whole(word)) is None else value for word in some]
            for some in words
        )
        exons = tuple((start + a, start + a + b) for a, b in zip(starts, sizes, strict=False))
        lies = (
            min(n, *sizes, *starts) >= 0
            and exons[0][0] == start
            and exons[-1][1] == end
            and n == len(sizes) == len(starts)
        )
        if not (lies and (left == right >= 0 or start <= left <= right <= end)):
            what = "the blocks of columns 7 to 12 do not fill the row from its start to its end"
            fix = "give BED12 of 12 columns"
            raise DataError(what, file=name_input(path), line=number, fix=fix)
        coding = tuple((max(a, left), min(b, right)) for a, b in exons if a < right and b > left)
    title = "" if name in (None, ".") else name
    return Gene(contig, start, end, STRANDS.get(strand, 0), title, exons, coding)


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
    """The parts of an interval that ends behind the origin of a circle, and by how much they move.

    Any other is one part.
    """
    if not circular or end <= length:
        return [(start, end, 0)]
    behind = (max(start - length, 0), end - length, length)
    return [(start, length, 0), behind] if start < length else [behind]


def _weigh(one: Transcript) -> tuple[int, int]:
    """Coding bases, and bases of exons."""
    return (sum(b - a for a, b, _ in one.coding), sum(b - a for a, b, _ in one.exons))


def _list_record(
    record: FlatRecord, contigs: Mapping[str, int], strangers: dict[str, None], shown: str
) -> Iterator[Gene]:
    """Genes of a GenBank or EMBL record: the coding part of each, or what stands in its place."""
    if record.name not in contigs:
        strangers[record.name] = None
        return
    circular: set[str] = set()
    yield from draw_transcripts(list_record(record, contigs, {}, circular), contigs, shown)
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
                title = name or feature.type
                yield Gene(record.name, some[0][0], end, way, title, tuple(some))
