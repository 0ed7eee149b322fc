"""Transcripts of an annotation with their exons, coding parts, frame and genetic code.

Read are GFF3, GTF, BED12, GenBank and EMBL. Unlike `genes`, which has one transcript of each gene,
here are all. A coding sequence is its parts one behind the other, as they are annotated: parts that
overlap by a base, or leave a few bases out, are ribosomal slippage.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from genodiff.errors import DataError
from genodiff.io.annotation_rows import (
    TITLES,
    AnnotationRow,
)
from genodiff.io.features import NAMES
from genodiff.io.genbank import FlatRecord, find_flat_format, parse_flat_records
from genodiff.io.genes import Part, read_blocks, read_rows
from genodiff.io.input_file import open_input
from genodiff.io.regions import refuse_contigs
from genodiff.io.text_lines import split_lines

log = logging.getLogger("genodiff")

_STRANDS = {"+": 1, "-": -1}
_RNA = ("RNA", "transcript", "transcript_variant", "gene_segment")  # ends of types of transcripts
_FORMATS = "GFF3, GTF, BED12 or GenBank"


class Transcript(NamedTuple):
    """A transcript at contig[start:end], 0-based and half-open; `strand` is 1 or -1, 0 for none.

    `exons` are in the order of the contig, () where nothing is known of them. `coding` are the
    parts of the CDS in the order in which they are read; `skip` bases of it stand before its first
    whole codon. `table` is NCBI's number of the genetic code as the annotation says it, or None.
    """

    contig: str
    start: int
    end: int
    strand: int
    gene: str
    name: str
    exons: tuple[Part, ...] = ()
    coding: tuple[Part, ...] = ()
    skip: int = 0
    table: int | None = None


class TranscriptFile(NamedTuple):
    """The transcripts of a file by contig and place, and the contigs that it says anything of.

    `left_out` are those on both strands or beyond their contig's end, with nothing but the place.
    """

    transcripts: list[Transcript]
    contigs: frozenset[str]
    left_out: tuple[Transcript, ...] = ()


def read_transcripts(path: str | Path, contigs: Mapping[str, int]) -> TranscriptFile:
    """The transcripts of a file on `contigs` (name → length).

    What lies beyond a contig's end or on both strands is left out and counted in the log. Raises
    `DataError` for a faulty row, and where no transcript is on any of the contigs.

        read_transcripts("genes.gff3", genome.contigs).transcripts[0].coding
    """
    seen: dict[str, None] = {}
    with open_input(path) as source:
        blocks = source.blocks()
        head, shown = next(blocks, b""), source.shown
        flat = find_flat_format(head)
        lines = split_lines(chain([head], blocks), _FORMATS if flat is None else flat.name, shown)
        if flat is None:
            rows = _read_rows(lines, path, contigs, seen)
        else:
            records = parse_flat_records(lines, flat, shown)
            rows = (one for record in records for one in _list_record(record, seen))
        found, left_out = [], list[Transcript]()
        for one in rows:
            if one.contig not in contigs:
                continue
            if not one.strand:  # only its place is known
                one = one._replace(exons=(), coding=())
            if one.start < 0 or one.end > contigs[one.contig] or one.strand not in (1, -1, 0):
                left_out.append(one._replace(strand=0, exons=(), coding=()))
            else:
                found.append(one)
    if left_out:
        what = "%s: %s transcripts are left out: on both strands, or beyond their contig's end"
        log.warning(what, shown, f"{len(left_out):,}")
    known = seen.keys() & contigs.keys()
    if not known and seen:
        raise refuse_contigs(next(iter(seen)), contigs, shown)
    if not found:
        raise DataError("has no gene on the genome's contigs", file=shown, fix=f"give {_FORMATS}")
    listed = sorted(found, key=lambda one: one[:3])
    return TranscriptFile(listed, frozenset(known), tuple(left_out))


def _read_rows(
    lines: Iterator[tuple[int, str]],
    path: str | Path,
    contigs: Mapping[str, int],
    seen: dict[str, None],
) -> Iterator[Transcript]:
    """Transcripts of GFF3, GTF or BED; every contig is added to `seen`."""

    def keeps(contig: str) -> bool:
        seen[contig] = None
        return contig in contigs

    def of_bed(row: Sequence[Any], fields: Sequence[str]) -> Transcript:
        gene = read_blocks(path, row, fields)
        exons, way = (gene.exons if len(fields) >= 12 else ()), gene.strand or 1
        coding = gene.coding[::way] if exons else ()
        return Transcript(*gene[:4], gene.name, gene.name, exons, coding)

    return read_rows(lines, path, keeps, join_transcripts, of_bed)


def join_transcripts(rows: Iterable[AnnotationRow]) -> Iterator[Transcript]:
    """The transcripts of rows of GFF3 or GTF: each parent of exons or of a CDS, and bare genes."""
    by_id: dict[tuple[str, str], AnnotationRow] = {}
    exons: dict[tuple[str, str], list[AnnotationRow]] = {}
    coding: dict[tuple[str, str], list[AnnotationRow]] = {}
    stops: dict[tuple[str, str], list[AnnotationRow]] = {}
    kinds = {"exon": exons, "CDS": coding, "stop_codon": stops}
    parents = set[tuple[str, str]]()
    for number, row in enumerate(rows):
        names = row.names
        above = [one for one in names.get("Parent", "").split(",") if one]
        if row.type in kinds:
            above = above or [names.get("transcript_id") or names.get("gene_id") or
                              names.get("ID") or f" {number}"]  # fmt: skip
            for one in above:
                kinds[row.type].setdefault((row.contig, one), []).append(row)
        elif row.type.endswith(("gene", *_RNA)):
            own = names.get("ID") or names.get("transcript_id") or names.get("gene_id")
            by_id.setdefault((row.contig, own or f" {number}"), row)
            parents.update((row.contig, one) for one in above)
            if not above and "transcript_id" in names:
                parents.add((row.contig, names.get("gene_id", "")))
    for key in dict.fromkeys([*by_id, *exons, *coding]):
        about, frames = by_id.get(key), _split_frames(coding.get(key, []))
        pieces = exons.get(key, [])
        if key in parents and not pieces and not frames:
            continue  # its transcripts stand for it
        named = [*([about] if about else []), *(frames[0] if frames else []), *pieces]
        owners = [by_id.get((key[0], one.names.get("Parent", ""))) for one in named]
        owner = next((one for one in owners if one), None)
        if owner is not None:
            owner = by_id.get((key[0], owner.names.get("Parent", "")), owner)
        titled = [owner] if owner else named
        gene = next((one.names[t] for one in titled for t in TITLES if one.names.get(t)), key[1])
        gene = next((one.names["gene_name"] for one in named if one.names.get("gene_name")), gene)
        name = named[0].names.get("transcript_id") or key[1].partition(":")[2] or key[1]
        bare = about is not None and about.type == "gene" and not pieces and not frames
        for frame in frames or [[]]:
            others = [*([about] if about else []), *pieces]
            made = _make(key[0], gene, name, others, frame, stops.get(key, []))
            spans = tuple(sorted({(row.start, row.end) for row in pieces}))
            spans = spans or tuple(sorted(made.coding)) or ((made.start, made.end),)
            yield made._replace(exons=() if bare else spans)


def _split_frames(rows: Sequence[AnnotationRow]) -> list[list[AnnotationRow]]:
    """The rows of each CDS. Rows of several identifiers are one, unless they lie on one another."""
    by_id: dict[str, list[AnnotationRow]] = {}
    for row in rows:
        by_id.setdefault(row.names.get("ID", ""), []).append(row)
    spans = sorted(
        (min(r.start for r in some), max(r.end for r in some)) for some in by_id.values()
    )
    apart = all(a[1] <= b[0] for a, b in pairwise(spans))
    return ([list(rows)] if rows else []) if apart else list(by_id.values())


def _make(
    contig: str,
    gene: str,
    name: str,
    others: Sequence[AnnotationRow],
    frame: Sequence[AnnotationRow],
    stops: Sequence[AnnotationRow],
) -> Transcript:
    rows = [*others, *frame]
    strands = {_STRANDS.get(row.strand, 0) for row in rows}
    way = strands.pop() if len(strands) == 1 else 2  # on both: left out by the reader
    ordered = sorted(frame, key=lambda row: way * row.start)
    coding = [(row.start, row.end) for row in ordered]
    for stop in sorted(stops, key=lambda row: way * row.start) if coding else ():
        if any(a <= stop.start and stop.end <= b for a, b in coding):
            continue  # GTF leaves the stop codon out of the CDS, GFF3 does not
        first, last = coding[-1]
        if way > 0 and last == stop.start:
            coding[-1] = (first, stop.end)
        elif way < 0 and first == stop.end:
            coding[-1] = (stop.start, last)
        else:
            coding.append((stop.start, stop.end))
    table = next((int(row.table) for row in frame if row.table.isdecimal()), None)
    ends = [*((row.start, row.end) for row in rows), *coding]
    return Transcript(
        contig, min(a for a, _ in ends), max(b for _, b in ends), way, gene, name, (),
        tuple(coding), ordered[0].phase if ordered else 0, table,
    )  # fmt: skip


def _list_record(record: FlatRecord, seen: dict[str, None]) -> Iterator[Transcript]:
    """Transcripts of a GenBank or EMBL record; exons of a CDS are those of an mRNA around it."""
    seen[record.name] = None
    messengers: dict[str, list[tuple[Part, ...]]] = {}
    made: list[Transcript] = []
    for feature in record.parsed.features:
        is_coding = feature.type == "CDS"
        if not (is_coding or feature.type == "gene" or feature.type.endswith(_RNA)):
            continue
        given = feature.qualifiers
        gene = next((some[0] for key in NAMES if (some := given.get(key))), feature.type)
        name = next((given[k][0] for k in ("transcript_id", "protein_id", "locus_tag")
                     if given.get(k)), gene)  # fmt: skip
        parts = [one for one in feature.location.parts if one.ref is None]
        try:
            places = tuple((int(one.start), int(one.end)) for one in parts)
        except TypeError:  # an unknown position
            continue
        if not places:
            continue
        strands = {one.strand or 0 for one in parts}
        way = strands.pop() if len(strands) == 1 else 2
        exons = tuple(sorted(places))
        if feature.type == "mRNA":
            messengers.setdefault(gene, []).append(exons)
            continue
        start = given.get("codon_start", ["1"])[0]
        table = given.get("transl_table", [""])[0]
        made.append(
            Transcript(
                record.name, exons[0][0], max(b for _, b in exons), way, gene, name,
                () if feature.type == "gene" else exons, places if is_coding else (),
                int(start) - 1 if start in ("1", "2", "3") else 0,
                int(table) if table.isdecimal() else None,
            )
        )  # fmt: skip
    whole = {one.gene for one in made if one.exons}
    for one in made:
        if not one.exons and (one.gene in whole or one.gene in messengers):
            continue
        around = (some for some in messengers.get(one.gene, ()) if one.coding and all(
            any(a <= c and d <= b for a, b in some) for c, d in one.coding))  # fmt: skip
        exons = next(around, one.exons)
        yield one._replace(
            exons=exons,
            start=min([one.start, *(a for a, _ in exons)]),
            end=max([one.end, *(b for _, b in exons)]),
        )
