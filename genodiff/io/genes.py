"""Genes and other features that are drawn below tracks and maps: where they are, and their exons.

Read are GFF3, GTF, BED with 3 to 12 columns, GenBank and EMBL. A gene of several transcripts is the
one with the most coding bases, or else the most bases.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from genodiff.errors import DataError
from genodiff.io.annotation_rows import (
    TITLES,
    AnnotationRow,
    is_annotation_row,
    parse_annotation_lines,
)
from genodiff.io.bed import parse_bed_lines
from genodiff.io.cells import is_bed_comment, read_whole
from genodiff.io.features import NAMES
from genodiff.io.genbank import FlatRecord, find_flat_format, parse_flat_records
from genodiff.io.input_file import name_input, open_input
from genodiff.io.regions import refuse_contigs
from genodiff.io.text_lines import split_lines

log = logging.getLogger("genodiff")

Part = tuple[int, int]
Feature = TypeVar("Feature")
_STRANDS = {"+": 1, "-": -1}
_WHOLE = {
    "region", "chromosome", "contig", "scaffold", "supercontig", "source", "biological_region",
    "databank_entry",
}  # fmt: skip
"""Types of rows that are no genes but the contig, or a part of it."""
_EXONS = {"exon", "five_prime_UTR", "three_prime_UTR", "UTR", "five_prime_utr", "three_prime_utr"}
_PARTS = {*_EXONS, "CDS", "intron", "start_codon", "stop_codon", "Selenocysteine", "intein"}


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
    with open_input(path) as source:
        blocks = source.blocks()
        head, shown = next(blocks, b""), source.shown
        flat = find_flat_format(head)
        kind = "GFF3, GTF, BED or GenBank" if flat is None else flat.name
        lines = split_lines(chain([head], blocks), kind, shown)
        if flat is None:
            genes = _read_rows(lines, path, kept, strangers)
        else:
            records = parse_flat_records(lines, flat, shown)
            genes = (gene for record in records for gene in _list_record(record))
        for one in genes:
            length = kept.get(one.contig, 0)
            if not length:
                strangers[one.contig] = None
            elif one.start < length:
                found.append(one)
            beyond += 0 < length < one.end
    if beyond:
        what = "%s: %s genes end beyond their contig; is it the annotation of this genome?"
        log.warning(what, shown, f"{beyond:,}")
    if not found:
        if strangers.keys() & contigs.keys():
            return []
        if not strangers:
            raise DataError("has no gene", file=shown, fix="give GFF3, GTF, BED or GenBank")
        raise refuse_contigs(next(iter(strangers)), contigs, shown)
    return sorted(found, key=lambda one: (one.contig, one.start, -one.end))


def pick_genes(genes: Iterable[Gene], contig: str, start: int, end: int) -> list[Gene]:
    """The genes that have a base in contig[start:end]."""
    return [one for one in genes if one.contig == contig and one.start < end and one.end > start]


def _read_rows(
    lines: Iterator[tuple[int, str]],
    path: str | Path,
    contigs: Mapping[str, int],
    strangers: dict[str, None],
) -> Iterator[Gene]:
    """Genes of GFF3, GTF or BED; contigs that are not known are added to `strangers`."""

    def keeps(contig: str) -> bool:
        if contig not in contigs:
            strangers[contig] = None
        return contig in contigs

    def of_bed(row: Sequence[Any], fields: Sequence[str]) -> Gene:
        return read_blocks(path, row, fields)

    return read_rows(lines, path, keeps, lambda rows: join_rows(list(rows)), of_bed)


def read_rows(
    lines: Iterator[tuple[int, str]],
    path: str | Path,
    keeps: Callable[[str], bool],
    of_annotation: Callable[[Iterator[AnnotationRow]], Iterator[Feature]],
    of_bed: Callable[[Sequence[Any], Sequence[str]], Feature],
) -> Iterator[Feature]:
    """What is made of the rows of GFF3 or GTF together, or of each row of BED.

    `keeps` says whether a contig is wanted. Raises `DataError` for a faulty row.
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
            yield from of_annotation(parse_annotation_lines(path, rest, keeps))
        else:
            rows = parse_bed_lines(path, rest)
            yield from (of_bed(row, fields) for row, fields in rows if keeps(row[0]))
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
    return Gene(contig, start, end, _STRANDS.get(strand, 0), title, exons, coding)


def join_rows(rows: Sequence[AnnotationRow]) -> Iterator[Gene]:
    """Genes of rows of GFF3 or GTF: parts go to their transcript, transcripts to their gene."""
    by_id: dict[tuple[str, str], AnnotationRow] = {}
    parts: dict[tuple[str, str], list[AnnotationRow]] = {}
    whole: dict[tuple[str, str], list[AnnotationRow]] = {}
    for number, row in enumerate(rows):
        names = row.names
        if row.type in _WHOLE:
            continue
        parents = [one for one in names.get("Parent", "").split(",") if one]
        if row.type in _PARTS:
            parents = parents or [names.get("transcript_id") or names.get("gene_id", "")]
            if row.type in _EXONS or row.type == "CDS":
                for one in parents:
                    parts.setdefault((row.contig, one or f" {number}"), []).append(row)
            continue
        own = names.get("ID") or names.get("transcript_id") or names.get("gene_id", "")
        key = (row.contig, own or f" {number}")
        by_id.setdefault(key, row)
        if not parents and "transcript_id" in names and names.get("gene_id"):
            parents = [names["gene_id"]]
        for one in parents:
            whole.setdefault((row.contig, one), []).append(row)
    made: dict[tuple[str, str], Gene] = {}
    for key in dict.fromkeys([*by_id, *parts]):
        if key in whole and key not in parts:
            continue  # its transcripts are drawn
        gene = _join(key, by_id, parts.get(key, []))
        about = by_id.get(key) or parts[key][0]
        family = about.names.get("gene_id") or (about.names.get("Parent") if key in by_id else None)
        at = (key[0], family or key[1])
        if at not in made or _weigh(gene) > _weigh(made[at]):
            made[at] = gene
    yield from made.values()


def _join(
    key: tuple[str, str],
    by_id: Mapping[tuple[str, str], AnnotationRow],
    parts: Sequence[AnnotationRow],
) -> Gene:
    """The gene or transcript of an identifier, with its parts."""
    own = by_id.get(key)
    rows = [*([own] if own else []), *parts]
    parent = own and by_id.get((key[0], own.names.get("Parent", "")))
    named = [*([parent] if parent else []), *rows]
    name = next((one.names[t] for one in named for t in TITLES if one.names.get(t)), rows[0].type)
    coding = sorted({(one.start, one.end) for one in parts if one.type == "CDS"})
    exons = sorted({(one.start, one.end) for one in parts if one.type != "CDS"})
    start, end = min(one.start for one in rows), max(one.end for one in rows)
    spans = tuple(exons or coding or [(start, end)])
    return Gene(key[0], start, end, _STRANDS.get(rows[0].strand, 0), name, spans, tuple(coding))


def _weigh(one: Gene) -> tuple[int, int]:
    """Coding bases, and bases of exons."""
    return (sum(b - a for a, b in one.coding), sum(b - a for a, b in one.exons))


def _list_record(record: FlatRecord) -> Iterator[Gene]:
    """Genes of a GenBank or EMBL record: the coding part of each, or what stands in its place."""
    made: dict[str, Gene] = {}
    for number, feature in enumerate(record.parsed.features):
        if feature.type in _WHOLE | {"exon", "intron", "mRNA"}:
            continue
        name = next((found[0] for key in NAMES if (found := feature.qualifiers.get(key))), "")
        try:
            parts = [one for one in feature.location.parts if one.ref is None]
            places = sorted((int(one.start), int(one.end)) for one in parts)
        except TypeError:  # an unknown position
            continue
        if not places:
            continue
        gene = Gene(
            record.name, places[0][0], max(end for _, end in places), feature.location.strand or 0,
            name or feature.type, tuple(places), tuple(places) if feature.type == "CDS" else (),
        )  # fmt: skip
        key = name or f" {number}"
        if key not in made or _weigh(gene) > _weigh(made[key]):
            made[key] = gene
    yield from made.values()
