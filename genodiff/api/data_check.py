"""What a file holds, and whether it is sound: `genodiff data check`."""

# It starts at once: what loads numpy or polars is imported where it is needed.

import json as json_module
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from genodiff.api.data import check_documents, holds_documents
from genodiff.api.data_kind import (
    find_data_kind,
    read_genome_rows,
    read_label_rows,
    read_sequence_rows,
)
from genodiff.errors import DataError, UsageError, format_count, printable
from genodiff.io.annotation_rows import find_annotation, read_annotation
from genodiff.io.coding import CodingReport, judge_coding
from genodiff.io.composition import Composition
from genodiff.io.fasta import read_contig_lengths, read_digests
from genodiff.io.genbank import FlatRecord
from genodiff.io.input_file import STDIN
from genodiff.io.text_file import digest_text
from genodiff.io.text_lines import read_text_lines
from genodiff.jobs.request import Option, Request
from genodiff.jobs.verbs import verb

_SPOOL = 1 << 26  # bytes of the answer that stay in memory
_SHOWN = 3  # names of CDS in a line
_MOST_NAMED = 12  # values of a column that are counted in a line
_STRANDS = {"+": "on +", "-": "on -", ".": "on no strand"}
_PLACED = ("BED", "annotation", "VCF", "labels")
"""Kinds of data that a FASTA is checked with."""
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
        rows: Iterator[dict[str, Any]]
        if kind == "FASTA":
            _check_records(file, json, self.seq_len)
        elif kind == "motifs":
            _check_motifs(file, json)
        elif kind == "VCF":
            _check_variants(file, fasta, json)
        elif kind in ("BED", "annotation", "labels"):
            contigs = None if fasta is None else read_contig_lengths(fasta)
            _check_places(file, kind, contigs, json)
        elif kind == "codon usage":
            from genodiff.constraints.codon_usage import read_codon_usage

            usage = read_codon_usage(file, 1)
            _answer(file, ({"codon": c, "frequency": f} for c, f in usage), json, "codon")
        elif kind == "sequences":
            labels: Counter[str] = Counter()
            rows = _counting(read_sequence_rows(file), "label", labels)
            _answer(file, rows, json, "sequence", "base", self.seq_len, names=labels)
        elif kind == "genomes":
            _answer(file, read_genome_rows(file), json, "genome")
        else:
            found = digest_text(file)
            rows = iter([{"name": Path(file).name, "length": found.characters, "sha": found.sha}])
            _answer(file, rows, json, "text", "character", self.seq_len)


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


def _check_places(file: str, kind: str, contigs: dict[str, int] | None, json: bool) -> None:
    """The rows of BED, of annotation or of labels, which must fit the FASTA where one is given."""
    names: Counter[str] = Counter()
    strands: Counter[str] = Counter()
    types: Counter[str] = Counter()
    if kind == "labels":
        rows = _counting(read_label_rows(file, contigs), "label", names)
        _answer(file, rows, json, "label", names=names)
    elif kind == "BED":
        rows = _counting(_read_intervals(file, contigs), "name", names)
        rows = _counting(rows, "strand", strands)
        _answer(file, rows, json, "interval", "base", names=names, more=(strands,))
    else:
        rows = _counting(_read_annotation(file, contigs), "type", types)
        rows = _counting(rows, "strand", strands)
        _answer(file, rows, json, "row", "base", more=(types, strands))
        found = find_annotation(read_text_lines(file, "annotation"))
        if found and not json:
            print(f"{printable(file)}: {found.kind}, counted from 1; {found.explain(file)}")


def _read_intervals(file: str, contigs: dict[str, int] | None) -> Iterator[dict[str, Any]]:
    from genodiff.io.bed import check_splits, read_bed  # polars

    table = read_bed(file, contigs)
    check_splits(table, file)
    lengths = table.select(
        "contig", "start", "end", "name", "strand", length=table["end"] - table["start"]
    )
    yield from lengths.iter_rows(named=True)


def _read_annotation(file: str, contigs: dict[str, int] | None) -> Iterator[dict[str, Any]]:
    for row in read_annotation(file, contigs, over_origin=True):
        shown = ("contig", "start", "end", "name", "strand", "type")
        yield {key: getattr(row, key) for key in shown} | {"length": row.end - row.start}


def _counting(
    rows: Iterator[dict[str, Any]], column: str, counts: Counter[str]
) -> Iterator[dict[str, Any]]:
    """The same rows; `counts` has the values of a column, where it has any."""
    for row in rows:
        if row[column] not in (None, "") and len(counts) <= _MOST_NAMED:
            counts[str(row[column])] += 1
        yield row


def _answer(
    file: str,
    rows: Iterator[dict[str, Any]],
    json: bool,
    thing: str,
    part: str | None = None,
    shortest: int | None = None,
    *,
    names: Counter[str] | None = None,
    more: tuple[Counter[str], ...] = (),
    kinds: Mapping[str, int] | None = None,
    lines: Sequence[str] = (),
) -> None:
    """Rows, or `lines` and their sum, on stdout; nothing at all unless every row is sound.

    `names` and `more` are counts that are told where they have few values; those of `names` only
    where some value stands more than once. `kinds` are counts of all.
    """
    n = total = longest = 0
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL, mode="w+", encoding="utf-8") as kept:
        for row in rows:
            length = row["length"] if part else 0
            n, total, longest = n + 1, total + length, max(longest, length)
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
            again = names is not None and max(names.values(), default=0) > 1
            told = [_describe_counts(one) for one in ((names, *more) if again else more) if one]
            print(f"{printable(file)}: sound; {'; '.join([', '.join(said), *filter(None, told)])}")
    sys.stdout.flush()  # a full disk or a closed pipe is noticed here, not at the interpreter's end


def _describe_counts(counts: Counter[str]) -> str:
    """`3 train, 1 test`; nothing of many values."""
    if len(counts) > _MOST_NAMED:
        return ""
    some = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{n:,} {_STRANDS.get(value, printable(value, 40))}" for value, n in some)
