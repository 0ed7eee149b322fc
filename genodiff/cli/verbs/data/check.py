"""Read a file from end to end and judge it; exit 3 with one line where it is not sound.

Nothing is written. With --json: FASTA {"name", "length", "sha", "gc", "n", "soft_masked",
"codes"} (sha256 of the upper-case sequence, IUPAC codes as N; GC among A, C, G and T; shares of N
and of soft-masked bases; how often each IUPAC code stands that is read as N), GenBank and EMBL
also {"cds": {"n", "stops_inside", "odd_length", "translation_differs", "not_judged"}}; motifs
{"name", "id", "length", "consensus", "information_bits"}; BED {"contig", "start", "end", "name",
"strand"}; text {"name", "length", "sha"} (characters; sha256 of the UTF-8 bytes); a text recipe,
folder or table {"name": split, "documents", "length", "repeated", "in_train"}; VCF {"chrom", "pos",
"id", "ref", "alt", "kinds"} (of each ALT: snv, mnv, ins, del, delins, or why it has no score).
"""

# It starts at once: what loads numpy or polars is imported where it is needed.

import json as json_module
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from genodiff.api.data import check_documents, holds_documents
from genodiff.cli.common import Common
from genodiff.errors import DataError, UsageError, printable
from genodiff.io.coding import CodingReport, judge_coding
from genodiff.io.composition import Composition
from genodiff.io.fasta import read_contig_lengths, read_digests
from genodiff.io.genbank import FlatRecord
from genodiff.io.input_file import STDIN, open_input
from genodiff.io.motif_format import find_motif_format
from genodiff.io.pipes import find_readable
from genodiff.io.text_file import digest_text
from genodiff.io.variants import Allele

_SPOOL = 1 << 26  # bytes of the answer that stay in memory
_BED = (".bed", ".narrowpeak", ".broadpeak", *(f".bed{n}" for n in range(3, 13)))
_VCF = (".vcf", ".bcf")
_ZIPPED = (".gz", ".bgz")
_HEAD = 1 << 16  # bytes that tell what a file is
_SHOWN = 3  # names of CDS in a line
_FINDINGS = {
    "stops_inside": "with a stop codon inside",
    "odd_length": "of a length that is no multiple of three",
    "translation_differs": "whose /translation differs",
    "not_judged": "not judged, with /transl_except or the like",
}


def check(
    file: Annotated[
        str | None,
        Parameter(
            help="FASTA, GenBank, EMBL, BED, VCF or motifs (MEME, JASPAR, TRANSFAC), also gzip; "
            "- is FASTA from stdin."
        ),
    ] = None,
    /,
    *,
    stdin: Annotated[
        bool, Parameter(name=STDIN, negative="", show=False)
    ] = False,  # cyclopts takes "-" for a flag
    json: Annotated[
        bool, Parameter(negative="", help="One JSON line per record on stdout.")
    ] = False,
    fasta: Annotated[str | None, Parameter(help="The FASTA that a BED or a VCF must fit.")] = None,
    seq_len: Annotated[
        int | None, Parameter(help="Refuse FASTA or text without one window of this length.")
    ] = None,
    text: Annotated[
        str | None, Parameter(help="With a text recipe's name as FILE: its files or folder.")
    ] = None,
    domain: Annotated[Literal["dna", "text"], Parameter(help="What the file should hold.")] = "dna",
    common: Common = Common(),
) -> None:
    """Print one line, or one JSON line per record, about a file that is sound."""
    logging.getLogger("genodiff").setLevel(logging.ERROR if common.quiet else logging.INFO)
    if (file is None) != stdin:
        raise UsageError(
            "give one FILE, or - for stdin", fix="a name that starts with - needs ./ before it"
        )
    file = STDIN if file is None else file
    kind = "text" if domain == "text" else _find_kind(file)
    if kind == "text" and holds_documents(file, text):
        _check_documents(file, text, json, seq_len)
        return
    if fasta is not None and kind not in ("BED", "VCF"):
        raise UsageError(
            f"--fasta: {printable(file)} is read as {kind}, which needs no reference",
            fix="leave it out",
        )
    rows: Iterator[dict[str, Any]]
    if kind == "FASTA":
        _check_records(file, json, seq_len)
    elif kind == "motifs":
        _check_motifs(file, json)
    elif kind == "VCF":
        _check_variants(file, fasta, json)
    elif kind == "BED":
        contigs = None if fasta is None else read_contig_lengths(fasta)
        _answer(file, _read_intervals(file, contigs), json, "interval", "base", None)
    else:
        found = digest_text(file)
        rows = iter([{"name": Path(file).name, "length": found.characters, "sha": found.sha}])
        _answer(file, rows, json, "text", "character", seq_len)


def _find_kind(file: str) -> str:
    name = Path(file).name.lower()
    for ending in _ZIPPED:
        name = name.removesuffix(ending)
    if name.endswith((*_BED, *_VCF)):
        return "BED" if name.endswith(_BED) else "VCF"
    head = b""
    if file != STDIN and os.path.isfile(find_readable(file)):  # stdin can be read once only
        with open_input(file) as source:
            head = next(source.blocks(), b"")[:_HEAD]
    return "motifs" if find_motif_format(file, head) else "FASTA"


def _check_records(file: str, json: bool, shortest: int | None) -> None:
    """The records of FASTA, GenBank or EMBL, and what is found about the latters' CDS."""
    coding: dict[str, CodingReport] = {}
    total: list[CodingReport] = []
    letters = Composition()

    def visit(record: FlatRecord) -> None:
        coding[record.name] = judge_coding(record)

    def rows() -> Iterator[dict[str, Any]]:
        for d in read_digests(file, visit):
            letters.merge(d.composition)
            row: dict[str, Any] = {"name": d.name, "length": d.length, "sha": d.sha}
            row |= d.composition.shares()
            report = coding.pop(d.name, None)
            if report is not None:
                total.append(report)
                row["cds"] = report.counts()
            yield row

    _answer(file, rows(), json, "record", "base", shortest)
    if not json:
        print(f"{printable(file)}: {letters.describe()}")
    if not json and any(report.n for report in total):
        print(f"{printable(file)}: {_describe_coding(total)}")


def _describe_coding(reports: list[CodingReport]) -> str:
    """One line about all the CDS of a file, with the names of the first few of each finding."""
    found = []
    for field, said in _FINDINGS.items():
        names = [name for report in reports for name in getattr(report, field)]
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
    for m in motifs:
        consensus, bits = m.consensus(), m.information_bits()
        if json:
            row = {"name": m.name, "id": m.id, "length": m.width, "consensus": consensus}
            print(json_module.dumps({**row, "information_bits": round(bits, 4)}))
            continue
        second = f"  {printable(m.name)}" if m.name != m.id else ""
        print(f"{printable(m.id):<{column}} {m.width:>3} {bits:6.2f} bits  {consensus}{second}")
    if not json:
        print(f"{printable(file)}: sound; {_count(len(motifs), 'motif')}")
    sys.stdout.flush()


def _check_variants(file: str, fasta: str | None, json: bool) -> None:
    """The records of a VCF or BCF, which must fit the FASTA where one is given."""
    from genodiff.io.faidx import Genome  # pyfaidx
    from genodiff.io.variant_alignment import judge_alt, judge_record
    from genodiff.io.variant_check import VariantSurvey, explain_contradictions
    from genodiff.io.variant_source import open_variants  # polars

    genome = None if fasta is None else Genome(fasta)
    survey = VariantSurvey()
    with (
        open_variants(file) as source,
        tempfile.SpooledTemporaryFile(max_size=_SPOOL, mode="w+", encoding="utf-8") as kept,
    ):
        for record in source.records():
            if genome is None:
                kinds = [judge_alt(alt) or "sequence" for alt in record.alts or (".",)]
                survey.records += 1
            else:
                found = judge_record(record, genome)
                survey.add(record, found, genome)
                kinds = [one.kind if isinstance(one, Allele) else one.value for one in found]
            row = {"chrom": record.chrom, "pos": record.pos, "id": record.id, "ref": record.ref}
            kept.write(json_module.dumps({**row, "alt": record.alts, "kinds": kinds}) + "\n")
        fault = genome and explain_contradictions(survey, source.shown, genome)
        if fault:
            raise fault
        for line in survey.describe():
            logging.getLogger("genodiff").warning("%s: %s", printable(file), line)
        if json:
            kept.seek(0)
            for line in kept:
                sys.stdout.write(line)
        else:
            told = ", ".join(f"{n:,} {kind}" for kind, n in sorted(survey.kinds.items()))
            said = f"{printable(file)}: sound; {_count(survey.records, 'record')}"
            print(f"{said}{': ' * bool(told)}{told}")
    sys.stdout.flush()


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
        said = "; ".join([_count(found.n_files, "file"), *map(printable, found.notes)])
        print(f"{printable(text or name)}: sound; {said}")


def _read_intervals(file: str, contigs: dict[str, int] | None) -> Iterator[dict[str, Any]]:
    from genodiff.io.bed import check_splits, read_bed  # polars

    table = read_bed(file, contigs)
    check_splits(table, file)
    lengths = table.select(
        "contig", "start", "end", "name", "strand", length=table["end"] - table["start"]
    )
    yield from lengths.iter_rows(named=True)


def _answer(
    file: str,
    rows: Iterator[dict[str, Any]],
    json: bool,
    thing: str,
    part: str,
    shortest: int | None,
) -> None:
    """Rows, or their sum, on stdout; nothing at all unless every row is sound."""
    n = total = longest = 0
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL, mode="w+", encoding="utf-8") as kept:
        for row in rows:
            n, total, longest = n + 1, total + row["length"], max(longest, row["length"])
            if json:
                kept.write(json_module.dumps(row) + "\n")
        if shortest is not None and longest < shortest:
            what = (
                f"every {thing} is shorter than --seq-len {shortest}: the longest has "
                f"{_count(longest, part)}"
            )
            raise DataError(what, file=file, fix="give longer data or a smaller --seq-len")
        if json:
            kept.seek(0)
            for line in kept:
                sys.stdout.write(line)
        else:
            print(f"{printable(file)}: sound; {_count(n, thing)}, {_count(total, part)}")
    sys.stdout.flush()  # a full disk or a closed pipe is noticed here, not at the interpreter's end


def _count(n: int, thing: str) -> str:
    return f"{n:,} {thing}{'s' * (n != 1)}"
