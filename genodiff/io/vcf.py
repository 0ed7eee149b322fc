"""VCF as text, read strictly line by line: a row that is not exact is an error with its line.

Only CHROM, POS, ID, REF and ALT are taken apart. Everything else passes through as it stands, byte
by byte, which a reader that parses and writes INFO and samples anew does not give. BCF is turned
into the same lines by pysam (`variant_source`).
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from genodiff.errors import DataError
from genodiff.io.input_file import name_input
from genodiff.io.text_lines import Line, RowReader, read_text_lines
from genodiff.io.variants import VariantRecord

COLUMNS = ("#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO")
_REF = re.compile("[A-Za-z]+")
_FIELDS = len(COLUMNS)
POSITION = "position (POS, which counts from 1)"


class VcfHeader:
    """The lines before the records: `meta` (## lines), `samples`, and the line of column names."""

    def __init__(self, meta: list[str], columns: str) -> None:
        self.meta, self.columns = meta, columns
        self.samples = columns.split("\t")[_FIELDS + 1 :]
        self.width = columns.count("\t") + 1


def read_vcf(path: str | Path) -> tuple[VcfHeader, Iterator[VariantRecord]]:
    """The header of a VCF file and its records, in its order. Raises `DataError`, with the line."""
    return parse_vcf(read_text_lines(path, "VCF"), path)


def parse_vcf(lines: Iterable[Line], path: str | Path) -> tuple[VcfHeader, Iterator[VariantRecord]]:
    """As `read_vcf`, of numbered lines; `path` is for messages."""
    rows, shown = iter(lines), name_input(path)
    header = _read_header(rows, shown)
    # an empty line is no record: some writers end a file with one
    return header, (_parse_record(line, number, header, shown) for number, line in rows if line)


def _read_header(rows: Iterator[Line], shown: str) -> VcfHeader:
    meta: list[str] = []
    for number, line in rows:
        fault = RowReader(shown, number).fault
        if line.startswith("##"):
            if number == 1 and not line.startswith("##fileformat=VCF"):
                fix = "a VCF begins with ##fileformat=VCFv4.2 or the like"
                raise fault("no VCF: another header", fix)
            meta.append(line)
            continue
        if line.startswith("#CHROM"):
            line = line.rstrip("\t ")  # htslib reads it so
            names = line.split("\t")
            if tuple(names[:_FIELDS]) != COLUMNS or (len(names) > 8 and names[8] != "FORMAT"):
                what = "the line of column names is not as in a VCF"
                raise fault(what, "separate these by tabs: " + " ".join(COLUMNS))
            if len(set(names[9:])) < len(names) - 9:
                raise fault("duplicate sample", "give each its own name")
            return VcfHeader(meta, line)
        if line:
            what = "no VCF header: the line of column names (#CHROM POS ID REF ALT ...) is missing"
            raise fault(what, "give a VCF with its header, or a table with column names")
    what = "ends before any record: no VCF header" if meta else "is empty: no VCF header"
    raise DataError(what, file=shown, fix="give a VCF with its header")


def _parse_record(line: str, number: int, header: VcfHeader, shown: str) -> VariantRecord:
    fields, reader = line.split("\t"), RowReader(shown, number)
    if len(fields) > header.width and not any(fields[header.width :]):
        fields = fields[: header.width]  # tabs at the end of a row
    if len(fields) != header.width:
        few = len(fields) < header.width
        what = f"has {len(fields)} columns, {'fewer' if few else 'more'} than {header.width}"
        blanks = few and len(line.split()) >= header.width
        fix = "separate columns by tabs" if blanks else "give every row the header's columns"
        raise reader.fault(what, fix)
    chrom, position, name, ref, alt = fields[:5]
    blank = next((text for text in (name, ref, alt) if " " in text), None)
    if blank is not None:
        raise reader.fault(f"'{blank}' has a blank", "remove it")
    reader.check_contig(chrom)
    reader.check_name(name, "ID")
    if not (position.isascii() and position.isdecimal() and len(position) < 13):
        raise reader.refuse_whole(position, POSITION)
    check_alleles(ref, alt, reader)
    alts = () if alt == "." else tuple(alt.split(","))
    if not all(alts) or alt == "":
        raise reader.fault("an ALT allele is empty", "write . where there is no ALT")
    return VariantRecord(number, chrom, int(position), name, ref, alts, tuple(fields[5:]))


def check_alleles(ref: str, alt: str, reader: RowReader, no_base: str | None = None) -> None:
    """Raises `DataError` for a REF that is neither letters nor `no_base`, and for NA, null, quotes.

    NA and NAN beside an allele that begins with N are bases: a deletion, or an insertion.
    """
    for what, allele, other in (("REF", ref, alt), ("ALT", alt, ref)):
        bases = allele.upper() in ("NA", "NAN") and other[:1] in ("N", "n")
        if allele and not bases:
            reader.check_given(allele, what, "give its bases, or remove the row; no ALT is .")
        reader.check_name(allele, what)
        if not allele.isascii():
            what = f"the {what} '{allele}' has a letter that is not ASCII"
            raise reader.fault(what, "write A, C, G, T or N")
    if not _REF.fullmatch(ref) and ref != no_base:
        what = f"REF '{ref}' is not a sequence of bases" if ref else "REF is empty"
        raise reader.fault(what, "give at least one base; an insertion has the base before it")
