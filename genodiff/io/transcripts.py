"""The transcripts of an annotation file: GFF3, GTF, BED12, GenBank or EMBL.

Whatever says something of genes reads them here: consequences, labels of bases, pictures. Unlike
`genes`, which has one transcript of each gene, here are all.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from Bio.SeqFeature import AfterPosition, BeforePosition, ExactPosition

from genodiff.errors import DataError, format_count
from genodiff.io.annotation_rows import AnnotationRow, is_annotation_row, parse_annotation_lines
from genodiff.io.bed import parse_bed_lines
from genodiff.io.faidx import Genome
from genodiff.io.features import NAMES
from genodiff.io.genbank import FlatRecord, open_text
from genodiff.io.gene_words import GeneWords, Words, find_biotype, find_code, read_gene_words
from genodiff.io.input_file import name_input, was_cut
from genodiff.io.regions import find_contig, refuse_contigs, warn_of_contigs
from genodiff.io.text_lines import is_bed_comment, read_whole
from genodiff.io.transcript_model import (
    BEYOND,
    NO_CDS,
    NO_ORDER,
    NO_PLACE,
    PSEUDO,
    GenePart,
    Part,
    Transcript,
    check_guess,
    covers,
    lay_transcript,
    read_pieces,
)
from genodiff.io.transcript_rows import RNA, STRANDS, join_transcripts

log = logging.getLogger("genodiff")

_FORMATS = "GFF3, GTF, BED12 or GenBank"
_SEGMENTS = {"C_region", "D_segment", "J_segment", "N_region", "S_region", "V_region", "V_segment"}
"""Parts of genes that are rearranged before they are read."""
Entry = TypeVar("Entry")


class TranscriptFile(NamedTuple):
    """The transcripts of a file by contig and place, and the contigs that it says anything of.

    `circular` are the contigs that go round, as the file or the genome says.
    """

    transcripts: list[Transcript]
    contigs: frozenset[str]
    circular: frozenset[str] = frozenset()


def read_transcripts(
    path: str | Path, contigs: Mapping[str, int], genome: Genome | None = None
) -> TranscriptFile:
    """The transcripts of a file on `contigs` (name → length).

    What the file leaves open is looked up in the letters of `genome`, or else unknown. Transcripts
    without a known protein are counted in the log by the reason. Raises `DataError` for a faulty
    row, and where no transcript is on any of the contigs.

        read_transcripts("genes.gff3", genome.contigs).transcripts[0].coding
    """
    seen: dict[str, None] = {}
    circular, shown = set(genome.circular if genome else ()), name_input(path)

    def keeps(contig: str) -> str | None:
        found = find_contig(contig, contigs, shown)
        seen[found or contig] = None
        return found

    def of_bed(row: Sequence[Any], fields: Sequence[str]) -> Transcript:
        contig, start, end, name, _, strand, _ = row
        way, title = STRANDS.get(strand, 0), "" if name in (None, ".") else name
        one = Transcript(contig, start, end, way, title, title)
        blocks = read_blocks(path, row, fields)
        if len(fields) < 12 or not way:
            one = one._replace(unknown=NO_CDS)
        else:
            exons, coding = (tuple(GenePart(*ends, way) for ends in some[::way]) for some in blocks)
            one = one._replace(exons=exons, coding=coding)
        laid = lay_transcript(one, contigs[contig], circular=False)
        return laid or one._replace(unknown=BEYOND, exons=(), coding=())

    of_record = partial(list_record, contigs=contigs, circular=circular)
    of_rows = partial(join_transcripts, contigs=contigs, circular=circular)
    read = read_entries(path, _FORMATS, keeps, of_record, of_rows, of_bed)
    found = [_settle(one, contigs, genome) for one in read]
    known = seen.keys() & contigs.keys()
    if not known and seen and not was_cut(shown):
        raise refuse_contigs(next(iter(seen)), contigs, shown)
    if all(one.unknown == BEYOND for one in found) and not was_cut(shown):
        raise DataError("has no gene on the genome's contigs", file=shown, fix=f"give {_FORMATS}")
    warn_of_contigs(seen, contigs, shown)
    reasons = Counter(one.unknown for one in found if one.unknown not in ("", NO_CDS))
    if reasons:
        some = "; ".join(f"{reason}: {n:,}" for reason, n in reasons.most_common())
        what = "%s: the protein of %s is unknown: no change of amino acids, no label (%s)"
        log.warning(what, shown, format_count(reasons.total(), "transcript"), some)
    found.sort(key=lambda one: one[:3])
    return TranscriptFile(found, frozenset(known), frozenset(circular))


def _settle(one: Transcript, contigs: Mapping[str, int], genome: Genome | None) -> Transcript:
    """A transcript with its guess confirmed by the letters; else its protein is unknown."""
    if not one.guessed or one.unknown:
        return one
    if genome is not None:
        letters = read_pieces(
            lambda a, b: genome.fetch(one.contig, a, b), contigs[one.contig], one.coding
        )
        if check_guess(one, letters):
            return one
    return one._replace(unknown=NO_ORDER)


def read_entries(
    path: str | Path,
    formats: str,
    keeps: Callable[[str], str | None],
    of_record: Callable[[FlatRecord], Iterator[Entry]],
    of_rows: Callable[[Iterator[AnnotationRow]], Iterator[Entry]],
    of_bed: Callable[[Sequence[Any], Sequence[str]], Entry],
) -> Iterator[Entry]:
    """What is made of each GenBank record, of the rows of GFF3 or GTF together, of each BED row.

    `keeps` is the genome's name of a wanted contig, None of another. Raises `DataError`.
    """
    with open_text(path, formats) as source:
        for record in source.records:
            if named := keeps(record.name):
                yield from of_record(record._replace(name=named))
        lines = iter(()) if source.flat else source.lines
        for number, text in lines:
            line = text.rstrip(" \t")
            if is_bed_comment(line):
                continue
            if line.count("\t") < 2:
                what, fix = "is neither a row of GFF3 or GTF nor of BED", "separate columns by tabs"
                raise DataError(what, file=source.shown, line=number, fix=fix)
            rest = chain([(number, text)], lines)
            if is_annotation_row(line):
                rows = parse_annotation_lines(path, rest, lambda name: bool(keeps(name)))
                yield from of_rows(row._replace(contig=keeps(row.contig) or "") for row in rows)
            else:
                for row, fields in parse_bed_lines(path, rest):
                    if named := keeps(row[0]):
                        yield of_bed((named, *row[1:]), fields)
            return


def read_blocks(
    path: str | Path, row: Sequence[Any], fields: Sequence[str]
) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """The blocks of a row of BED, its exons, and what is thick of them, its CDS."""
    start, end = row[1:3]
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
            raise DataError(what, file=name_input(path), line=row[-1], fix=fix)
        coding = tuple((max(a, left), min(b, right)) for a, b in exons if a < right and b > left)
    return exons, coding


class _FlatLocation(NamedTuple):
    """The parts of a location, whether the feature ends where it does, and what is amiss."""

    pieces: tuple[GenePart, ...]
    starts: bool = True
    ends: bool = True
    fault: str = ""


def is_of_record(kind: str) -> bool:
    """Whether a type of feature is a gene, a transcript or a CDS."""
    return kind in ("CDS", "gene", *_SEGMENTS) or kind.endswith(RNA)


def list_record(
    record: FlatRecord, contigs: Mapping[str, int], circular: set[str]
) -> Iterator[Transcript]:
    """Transcripts of a record, whose name is added to `circular` if it goes round.

    A location says the order of its parts. Exons of a CDS are those of an mRNA of its gene that
    holds its parts. `order(...)`, parts in another record, and positions that are not exact leave a
    protein unknown; < and > at an end say that the feature goes on there.
    """
    if record.parsed.annotations.get("topology") == "circular":
        circular.add(record.name)
    length, is_circular = contigs[record.name], record.name in circular
    features = record.parsed.features
    genes = [one for one in features if one.type == "gene"]
    source: Words = next((one.qualifiers for one in features if one.type == "source"), {})
    messengers: dict[str, list[_FlatLocation]] = {}
    made: list[tuple[Transcript, GeneWords]] = []
    for feature in features:
        is_coding = feature.type == "CDS"
        if not is_of_record(feature.type):
            continue
        place = _read_place(feature.location)
        if not place.pieces:
            continue
        if feature.type == "mRNA":
            messengers.setdefault(_name(feature), []).append(place)
            continue
        owners = [one.qualifiers for one in genes if is_coding and _same_gene(one, feature)]
        said = read_gene_words([feature.qualifiers, *owners])
        if said.table is None:
            said = said._replace(table=find_code(source))
        made.append((_make(record.name, feature, place, said), said))
    whole = {one.gene for one, _ in made if one.exons or one.coding}
    for one, said in made:
        bare = not one.exons and not one.coding and one.unknown in (NO_CDS, PSEUDO)
        if bare and (one.gene in whole or one.gene in messengers):
            continue
        if one.coding and not said.trans:
            around = (place.pieces for place in messengers.get(one.gene, ())
                      if not place.fault and covers(place.pieces, one.coding))  # fmt: skip
            one = one._replace(exons=next(around, one.exons))
        laid = lay_transcript(one, length, circular=is_circular, trans=said.trans)
        if laid is not None:
            yield laid
    for gene in messengers.keys() - whole:
        for place in messengers[gene]:
            one = _outline(record.name, gene, gene, place)._replace(
                exons=() if place.fault else place.pieces, unknown=NO_CDS
            )
            laid = lay_transcript(one, length, circular=is_circular)
            if laid is not None:
                yield laid


def _name(feature: Any) -> str:
    given = feature.qualifiers
    return str(next((some[0] for key in NAMES if (some := given.get(key))), feature.type))


def _same_gene(gene: Any, feature: Any) -> bool:
    keys = [key for key in ("locus_tag", "gene") if key in gene.qualifiers]
    return any(gene.qualifiers[key] == feature.qualifiers.get(key) for key in keys[:1])


def _read_place(location: Any) -> _FlatLocation:
    """The parts of a location of Biopython in the order of reading."""
    pieces: list[GenePart] = []
    fault = NO_ORDER if getattr(location, "operator", "join") != "join" else ""
    for part in location.parts:
        if part.ref is not None:
            fault = "a part of it is in another record"
            continue
        try:
            pieces.append(GenePart(int(part.start), int(part.end), -1 if part.strand == -1 else 1))
        except TypeError:  # an unknown position
            fault = NO_PLACE
    ways = [-1 if part.strand == -1 else 1 for part in location.parts]
    ends = [(part.start, part.end)[::way] for part, way in zip(location.parts, ways, strict=True)]
    flat = [position for pair in ends for position in pair]
    fuzzy = [not isinstance(position, ExactPosition) for position in flat]
    strange = [position for position, odd in zip(flat, fuzzy, strict=True)
               if odd and not isinstance(position, (BeforePosition, AfterPosition))]  # fmt: skip
    if strange or any(fuzzy[1:-1]):
        fault = fault or NO_PLACE
    return _FlatLocation(tuple(pieces), not fuzzy[0], not fuzzy[-1], fault)


def _outline(contig: str, gene: str, name: str, place: _FlatLocation) -> Transcript:
    """A transcript of which only the place is known."""
    spans: tuple[Part, ...] = tuple(sorted({one[:2] for one in place.pieces}))
    ways = {one.strand for one in place.pieces}
    start, end = spans[0][0], max(b for _, b in spans)
    apart = spans if len(spans) > 1 else ()
    return Transcript(contig, start, end, ways.pop() if len(ways) == 1 else 0, gene, name,
                      apart=apart)  # fmt: skip


def _make(contig: str, feature: Any, place: _FlatLocation, said: GeneWords) -> Transcript:
    given, gene = feature.qualifiers, _name(feature)
    name = next((given[k][0] for k in ("transcript_id", "protein_id", "locus_tag")
                 if given.get(k)), gene)  # fmt: skip
    one = _outline(contig, gene, name, place)
    if feature.type in _SEGMENTS:
        return one._replace(unknown="rearranged before it is read")
    if feature.type == "gene":
        biotype = find_biotype(given)
        known = biotype and biotype != "protein_coding"
        pseudo = PSEUDO if said.pseudo else ""
        return one._replace(unknown=pseudo or ("" if known else NO_CDS))
    is_coding = feature.type == "CDS"
    if place.fault:
        return one._replace(unknown=place.fault if is_coding else "")
    one = one._replace(exons=place.pieces, apart=())
    if not is_coding or said.pseudo:
        return one._replace(unknown=PSEUDO if said.pseudo else "")
    start = given.get("codon_start", ["1"])[0]
    skip = int(start) - 1 if start in ("1", "2", "3") else 0
    wrong = "" if start in ("1", "2", "3") else "its codon_start is none"
    return one._replace(
        coding=place.pieces, skip=skip, table=said.table,
        starts=place.starts and not skip, ends=place.ends, slips=said.slips,
        any_start=said.any_start or given.get("translation", [""])[0].startswith("M"),
        recoded=said.recoded, unknown=said.unknown or wrong,
    )  # fmt: skip
