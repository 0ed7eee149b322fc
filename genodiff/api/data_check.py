"""What a file holds, and whether it is sound: `genodiff data check`."""

# It starts at once: what loads numpy or polars is imported where it is needed.

import json as json_module
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from genodiff.api.data import check_documents, holds_documents
from genodiff.api.data_kind import (
    find_data_kind,
    read_annotation_rows,
    read_genome_rows,
    read_interval_rows,
    read_label_rows,
    read_sequence_rows,
    read_text_row,
    read_usage_rows,
)
from genodiff.errors import DataError, UsageError, format_count, printable
from genodiff.io.annotation_rows import find_annotation
from genodiff.io.coding import CodingReport, judge_coding
from genodiff.io.composition import Composition
from genodiff.io.fasta import read_contig_lengths, read_digests
from genodiff.io.genbank import FlatRecord
from genodiff.io.input_file import STDIN
from genodiff.io.text_lines import read_text_lines
from genodiff.jobs.request import Option, Request
from genodiff.jobs.verbs import verb

_SPOOL = 1 << 26  # bytes of the answer that stay in memory
_SHOWN = 3  # names of CDS in a line
_MOST_NAMED = 12  # values of a column that are counted in a line
_STRANDS = {"+": "on +", "-": "on -", ".": "on no strand"}
_PLACED = ("BED", "annotation", "VCF", "labels")
"""Kinds of data that a FASTA is checked with."""
_TABLES: dict[str, tuple[Callable[..., Iterator[dict[str, Any]]], str, str | None, list[str]]] = {
    "BED": (read_interval_rows, "interval", "base", ["name", "strand"]),
    "annotation": (read_annotation_rows, "row", "base", ["type", "strand"]),
    "labels": (read_label_rows, "label", None, ["label"]),
    "sequences": (read_sequence_rows, "sequence", "base", ["label"]),
    "genomes": (read_genome_rows, "genome", None, []),
    "codon usage": (read_usage_rows, "codon", None, []),
    "text": (read_text_row, "text", "character", []),
}
"""What reads the rows of a kind, the nouns of a row and of its length, and columns to count."""
_NAMES = ("name", "label")
"""Columns that are counted only where some value stands more than once."""
_FINDINGS = {
    "stops_inside": "with a stop codon inside",
    "odd_length": "of a length that is no multiple of three",
    "translation_differs": "whose /translation differs",
    "not_judged": "not judged, with /transl_except or the like",
}


@verb(
    "data check",
    function="",
    help="""
Check a whole data file; exit 3 with one line if it is not sound.

The file type is determined by content. Nothing is written. With --json: FASTA {"name", "length",
"sha", "gc", "n", "soft_masked", "codes"} (sha256 of the upper-case sequence, IUPAC codes as N; GC
among A, C, G and T; shares of N and of soft-masked bases; number of each IUPAC code read as N),
GenBank and EMBL also {"cds": {"n", "stops_inside", "odd_length", "translation_differs",
"not_judged"}}; motifs {"name", "id", "length", "consensus", "information_bits"}; BED, GTF, GFF3 and
SAF {"contig", "start", "end", "name", "strand"}, all in BED coordinates; labels {"contig", "start",
"end", "label"}; tables of sequences {"name", "length", "label"}; codon usage {"codon",
"frequency"}; text {"name", "length", "sha"} (characters; sha256 of the UTF-8 bytes); a text recipe,
folder or table {"name": split, "documents", "length", "repeated", "in_train"}; VCF and tables of
variants {"chrom", "pos", "id", "ref", "alt", "kinds"} (for each ALT: snv, mnv, ins, del, delins, or
why it has no score).
""",
)
@dataclass(frozen=True, kw_only=True)
class DataCheckRequest(Request[None]):
    """Check a data file; print one line, or one JSON line per record, if it is sound."""

    file: Annotated[
        str | None,
        Option(
            "FASTA, GenBank, EMBL; BED, GTF, GFF3, SAF; VCF, BCF or a table of variants; motifs "
            "(MEME, JASPAR, TRANSFAC); codon usage; a table of sequences or labels; a list of "
            "genomes; also gzip; - is FASTA from stdin.",
            ("FILE",),
            is_word=True,
        ),
    ] = field(default=None, kw_only=False)
    stdin: Annotated[bool, Option("", (STDIN,))] = False  # cyclopts takes "-" for a flag
    json: Annotated[bool, Option("One JSON line per record on stdout.")] = False
    fasta: Annotated[
        str | None,
        Option("The FASTA file that intervals, annotation, variants or labels must match."),
    ] = None
    seq_len: Annotated[
        int | None, Option("Refuse FASTA or text without one window of this length.")
    ] = None
    text: Annotated[str | None, Option("With a text recipe as FILE: its files or folder.")] = None
    domain: Annotated[Literal["dna", "text"], Option("Expected domain.")] = "dna"

    def answer(self, *given: Any) -> None:
        file, text, json, fasta = self.file, self.text, self.json, self.fasta
        if (file is None) != self.stdin:
            fix = "a name that starts with - needs ./ before it"
            raise UsageError("give one FILE, or - for stdin", fix=fix)
        file = STDIN if file is None else file
        kind = "text" if self.domain == "text" else find_data_kind(file)
        if kind == "text" and holds_documents(file, text):
            _check_documents(file, text, json, self.seq_len)
            return
        if fasta is not None and kind not in _PLACED:
            what = f"--fasta: {printable(file)} is read as {kind}, which needs no reference"
            raise UsageError(what, fix="leave it out")
        if kind == "FASTA":
            _check_records(file, json, self.seq_len)
        elif kind == "motifs":
            _check_motifs(file, json)
        elif kind == "VCF":
            _check_variants(file, fasta, json)
        else:
            read, thing, part, columns = _TABLES[kind]
            contigs = None if fasta is None else read_contig_lengths(fasta)
            is_placed = kind in _PLACED
            rows = read(file, contigs) if is_placed else read(file)
            _answer(file, rows, json, thing, part, None if is_placed else self.seq_len, columns)
            found = kind == "annotation" and find_annotation(read_text_lines(file, kind))
            if found and not json:
                print(f"{printable(file)}: {found.kind}, counted from 1; {found.explain(file)}")


def _check_records(file: str, json: bool, shortest: int | None) -> None:
    """The records of FASTA, GenBank or EMBL, and what is found about the latters' CDS."""
    coding: dict[str, CodingReport] = {}
    total: list[CodingReport] = []
    letters = Composition()
    circular: list[str] = []

    def visit(record: FlatRecord) -> None:
        coding[record.name] = judge_coding(record)

    def rows() -> Iterator[dict[str, Any]]:
        for d in read_digests(file, visit):
            letters.merge(d.composition)
            row: dict[str, Any] = {"name": d.name, "length": d.length, "sha": d.sha}
            row |= d.composition.shares() | ({"circular": True} if d.circular else {})
            circular.extend([d.name] if d.circular else [])
            report = coding.pop(d.name, None)
            if report is not None:
                total.append(report)
                row["cds"] = report.counts()
            yield row

    _answer(file, rows(), json, "record", "base", shortest)
    if not json:
        print(f"{printable(file)}: {letters.describe()}")
    if not json and circular:
        names = ", ".join(printable(name, 40) for name in circular[:_SHOWN])
        more = ", …" if len(circular) > _SHOWN else ""
        says = "redesign goes round; windows of training and of scores end at the origin"
        print(f"{printable(file)}: {len(circular):,} circular ({names}{more}): {says}")
    if not json and any(report.n for report in total):
        print(f"{printable(file)}: {_describe_coding(total)}")


def _describe_coding(reports: list[CodingReport]) -> str:
    """One line about all the CDS of a file, with the names of the first few of each finding."""
    found = []
    for what, said in _FINDINGS.items():
        names = [name for report in reports for name in getattr(report, what)]
        if names:
            shown = ", ".join(printable(name, 40) for name in names[:_SHOWN])
            more = ", …" if len(names) > _SHOWN else ""
            found.append(f"{len(names):,} {said} ({shown}{more})")
    n = sum(report.n for report in reports)
    return "; ".join([f"{n:,} CDS", *(found or ["all agree with their codon tables"])])


def _check_motifs(file: str, json: bool) -> None:
    """A line for each motif of a file that is sound."""
    from genodiff.io.motifs import read_motifs  # numpy

    motifs = read_motifs(file)
    column = min(max(len(printable(m.id)) for m in motifs), 40)
    rows, lines = [], []
    for m in motifs:
        consensus, bits = m.consensus(), m.information_bits()
        row = {"name": m.name, "id": m.id, "length": m.width, "consensus": consensus}
        rows.append({**row, "information_bits": round(bits, 4)})
        second = f"  {printable(m.name)}" if m.name != m.id else ""
        size = f"{m.width:>3} {bits:6.2f} bits"
        lines.append(f"{printable(m.id):<{column}} {size}  {consensus}{second}")
    _answer(file, iter(rows), json, "motif", lines=lines)


def _check_variants(file: str, fasta: str | None, json: bool) -> None:
    """The records of a VCF or BCF, which must fit the FASTA where one is given."""
    from genodiff.io.faidx import Genome  # pyfaidx
    from genodiff.io.variant_source import open_variants  # polars
    from genodiff.io.variants import (
        Allele,
        VariantSurvey,
        anchor_record,
        explain_contradictions,
        judge_alt,
        judge_record,
    )

    genome = None if fasta is None else Genome(fasta)
    survey = VariantSurvey()

    def rows() -> Iterator[dict[str, Any]]:
        with open_variants(file) as source:
            for record in source.records(None if genome is None else genome.contigs):
                if genome is None:
                    alts = [alt for alt in record.alts or (".",) if alt != "-" or source.header]
                    kinds = [judge_alt(alt) or "sequence" for alt in alts]
                else:
                    record = anchor_record(record, genome) if source.header is None else record
                    found = judge_record(record, genome)
                    survey.add(record, found, genome)
                    kinds = [one.kind if isinstance(one, Allele) else one.value for one in found]
                row = {"chrom": record.chrom, "pos": record.pos, "id": record.id}
                yield {**row, "ref": record.ref, "alt": record.alts, "kinds": kinds}
            fault = genome and explain_contradictions(survey, source.shown, genome)
        if fault:
            raise fault
        for line in survey.describe():
            logging.getLogger("genodiff").warning("%s: %s", printable(file), line)

    _answer(file, rows(), json, "record", kinds=survey.kinds)


def _check_documents(name: str, text: str | None, json: bool, shortest: int | None) -> None:
    """One line (or JSON object) per split of a recipe, a folder or a table."""
    found = check_documents(name, text=text, seq_len=shortest)
    for row in found.rows:
        if json:
            print(json_module.dumps(row))
            continue
        said = f"{row['documents']:,} documents, {row['length']:,} bytes"
        said += f"; {row['repeated']:,} repeat an earlier one" if row["repeated"] else ""
        said += f"; {row['in_train']:,} stand in train, too" if row["in_train"] else ""
        print(f"{row['name']:<6} {said}")
    if not json:
        said = "; ".join([format_count(found.n_files, "file"), *map(printable, found.notes)])
        print(f"{printable(text or name)}: sound; {said}")


def _answer(
    file: str,
    rows: Iterator[dict[str, Any]],
    json: bool,
    thing: str,
    part: str | None = None,
    shortest: int | None = None,
    columns: Sequence[str] = (),
    *,
    kinds: Mapping[str, int] | None = None,
    lines: Sequence[str] = (),
) -> None:
    """Rows, or `lines` and their sum, on stdout; nothing at all unless every row is sound.

    The values of `columns` are counted where they are few. `kinds` are counts of all.
    """
    n = total = longest = 0
    counts = {column: Counter[str]() for column in columns}
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL, mode="w+", encoding="utf-8") as kept:
        for row in rows:
            length = row["length"] if part else 0
            n, total, longest = n + 1, total + length, max(longest, length)
            for column, counted in counts.items():
                if row[column] not in (None, "") and len(counted) <= _MOST_NAMED:
                    counted[str(row[column])] += 1
            if json:
                kept.write(json_module.dumps(row) + "\n")
        if part and shortest is not None and longest < shortest:
            what = (
                f"every {thing} is shorter than --seq-len {shortest}: the longest has "
                f"{format_count(longest, part)}"
            )
            raise DataError(what, file=file, fix="give longer data or a smaller --seq-len")
        if json:
            kept.seek(0)
            for line in kept:
                sys.stdout.write(line)
        else:
            print(*lines, sep="\n", end="\n" * bool(lines))
            said = [format_count(n, thing), *([format_count(total, part)] if part else [])]
            if kinds:
                told_kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))
                said[-1] += f": {told_kinds}"
            told = [
                _describe_counts(counted)
                for column, counted in counts.items()
                if column not in _NAMES or max(counted.values(), default=0) > 1
            ]
            print(f"{printable(file)}: sound; {'; '.join([', '.join(said), *filter(None, told)])}")
    sys.stdout.flush()  # a full disk or a closed pipe is noticed here, not at the interpreter's end


def _describe_counts(counts: Counter[str]) -> str:
    """`3 train, 1 test`; nothing of many values."""
    if len(counts) > _MOST_NAMED:
        return ""
    some = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{n:,} {_STRANDS.get(value, printable(value, 40))}" for value, n in some)
