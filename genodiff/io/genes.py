"""Genes and other features that are drawn below tracks and maps: where they are, and their exons.

Read are GFF3, GTF, BED with 3 to 12 columns, GenBank and EMBL. A gene of several transcripts is the
one with the most coding bases, or else the most bases.
"""

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from genodiff.errors import DataError
from genodiff.io.features import NAMES
from genodiff.io.genbank import FlatRecord, find_flat_format, parse_flat_records
from genodiff.io.input_file import open_input
from genodiff.io.regions import suggest_contig
from genodiff.io.text_lines import split_lines

log = logging.getLogger("genodiff")

Part = tuple[int, int]
_STRANDS = {"+": 1, "-": -1}
_WHOLE = {
    "region", "chromosome", "contig", "scaffold", "supercontig", "source", "biological_region",
    "databank_entry",
}  # fmt: skip
"""Types of rows that are no genes but the contig, or a part of it."""
_EXONS = {"exon", "five_prime_UTR", "three_prime_UTR", "UTR", "five_prime_utr", "three_prime_utr"}
_PARTS = {*_EXONS, "CDS", "intron", "start_codon", "stop_codon", "Selenocysteine", "intein"}
_TITLES = ("gene_name", "Name", "gene", "locus_tag", "gene_id", "ID", "transcript_id")
_KEPT = {*_TITLES, "Parent"}
_PAIR = re.compile(r'\s*([^\s=";]+)[\s=]+(?:"([^"]*)"|([^;]*))\s*(?:;|$)')


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


class GeneRow(NamedTuple):
    """A row of GFF3 or GTF."""

    contig: str
    kind: str
    start: int
    end: int
    strand: int
    names: Mapping[str, str]


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
            genes = _read_rows(lines, shown, kept, strangers)
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
        first = next(iter(strangers))
        what = f"none of its contigs ('{first}', ...) is one of the genome's"
        raise DataError(what, file=shown, fix=suggest_contig(first, dict(contigs)))
    return sorted(found, key=lambda one: (one.contig, one.start, -one.end))


def pick_genes(genes: Iterable[Gene], contig: str, start: int, end: int) -> list[Gene]:
    """The genes that have a base in contig[start:end]."""
    return [one for one in genes if one.contig == contig and one.start < end and one.end > start]


def _read_rows(
    lines: Iterable[tuple[int, str]],
    shown: str,
    contigs: Mapping[str, int],
    strangers: dict[str, None],
) -> Iterator[Gene]:
    """Genes of GFF3, GTF or BED; contigs that are not known are added to `strangers`."""
    rows: list[GeneRow] = []
    for number, line in lines:
        if line.startswith(("##FASTA", ">")):
            break
        line = line.rstrip()
        if not line or line[0] == "#" or line.split(None, 1)[0] in ("track", "browser"):
            continue
        fields = line.split("\t")
        if len(fields) < 3:
            what, fix = "is neither a row of GFF3 or GTF nor of BED", "separate columns by tabs"
            raise DataError(what, file=shown, line=number, fix=fix)
        if fields[0] not in contigs:
            strangers[fields[0]] = None
            continue
        if len(fields) == 9 and not (fields[1].isdigit() and fields[2].isdigit()):
            rows.append(_read_gff_row(fields, number, shown))
        else:
            yield _read_bed_row(fields, number, shown)
    yield from join_rows(rows)


def _read_gff_row(fields: Sequence[str], number: int, shown: str) -> GeneRow:
    contig, _, kind, first, last, _, strand, _, rest = fields
    start, end = _read_span(first, last, 1, number, shown)
    pairs = _PAIR.findall(rest)
    names = {key: unquote(plain or quoted) for key, quoted, plain in pairs if key in _KEPT}
    return GeneRow(contig, kind, start, end, _STRANDS.get(strand, 0), names)


def _read_span(first: str, last: str, base: int, number: int, shown: str) -> Part:
    """[start, end) of two words that count from `base`."""
    if not (first.isdigit() and last.isdigit() and base <= int(first) <= int(last)):
        what = f"'{first}' and '{last}' are no start and end"
        fix = "give whole numbers, the start first"
        raise DataError(what, file=shown, line=number, fix=fix)
    return int(first) - base, int(last)


def _read_bed_row(fields: Sequence[str], number: int, shown: str) -> Gene:
    start, end = _read_span(fields[1], fields[2], 0, number, shown)
    more = dict(enumerate(fields))
    exons: tuple[Part, ...] = ((start, end),)
    coding: tuple[Part, ...] = ()
    if len(fields) >= 12:
        try:
            sizes, places = (
                [int(word) for word in fields[at].strip(",").split(",")] for at in (10, 11)
            )
            pairs = zip(places, sizes, strict=True)
            exons = tuple((start + place, start + place + size) for place, size in pairs)
            thick = int(fields[6]), int(fields[7])
        except ValueError:
            what, fix = "the blocks of columns 7 to 12 cannot be read", "give BED12 of 12 columns"
            raise DataError(what, file=shown, line=number, fix=fix) from None
        coding = tuple(
            (max(a, thick[0]), min(b, thick[1])) for a, b in exons if a < thick[1] and b > thick[0]
        )
    name = more.get(3, "")
    strand = _STRANDS.get(more.get(5, ""), 0)
    return Gene(fields[0], start, end, strand, "" if name == "." else name, exons, coding)


def join_rows(rows: Sequence[GeneRow]) -> Iterator[Gene]:
    """Genes of rows of GFF3 or GTF: parts go to their transcript, transcripts to their gene."""
    by_id: dict[tuple[str, str], GeneRow] = {}
    parts: dict[tuple[str, str], list[GeneRow]] = {}
    whole: dict[tuple[str, str], list[GeneRow]] = {}
    for number, row in enumerate(rows):
        names = row.names
        if row.kind in _WHOLE:
            continue
        parents = [one for one in names.get("Parent", "").split(",") if one]
        if row.kind in _PARTS:
            parents = parents or [names.get("transcript_id") or names.get("gene_id", "")]
            if row.kind in _EXONS or row.kind == "CDS":
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
    key: tuple[str, str], by_id: Mapping[tuple[str, str], GeneRow], parts: Sequence[GeneRow]
) -> Gene:
    """The gene or transcript of an identifier, with its parts."""
    own = by_id.get(key)
    rows = [*([own] if own else []), *parts]
    parent = own and by_id.get((key[0], own.names.get("Parent", "")))
    named = [*([parent] if parent else []), *rows]
    name = next((one.names[t] for one in named for t in _TITLES if one.names.get(t)), rows[0].kind)
    coding = sorted({(one.start, one.end) for one in parts if one.kind == "CDS"})
    exons = sorted({(one.start, one.end) for one in parts if one.kind != "CDS"})
    start, end = min(one.start for one in rows), max(one.end for one in rows)
    spans = tuple(exons or coding or [(start, end)])
    return Gene(key[0], start, end, rows[0].strand, name, spans, tuple(coding))


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
