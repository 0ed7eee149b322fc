"""Which kind of data a file holds, by its content: what `genodiff data check` judges it as."""

import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from genodiff.errors import DataError
from genodiff.io.annotation_rows import find_annotation
from genodiff.io.file_kinds import find_motif_format, find_readable
from genodiff.io.genbank import find_flat_format
from genodiff.io.input_file import STDIN, open_input
from genodiff.io.text_lines import read_text_lines

_BED = (".bed", ".narrowpeak", ".broadpeak", *(f".bed{n}" for n in range(3, 13)))
_VCF = (".vcf", ".bcf")
_FASTA = (".fa", ".fasta", ".fna", ".gb", ".gbk", ".gbff", ".embl")
_TABLES = (".csv", ".tsv", ".tab", ".txt", ".parquet")
_HEAD = 1 << 16  # bytes that tell what a file is
_ROWS, _LINES = 1000, 100_000  # that are looked at
_DIGITS = re.compile("[0-9]{1,13}")
_CODON = re.compile(r"(^|[\s,;])[ACGTU]{3}[\s,;]+[0-9]", re.IGNORECASE)
_SEPARATOR = re.compile("[\t,;]")


def find_data_kind(file: str) -> str:
    """What a file is read as.

    One of FASTA (GenBank and EMBL, too), motifs, VCF (tables of variants, too), BED, annotation,
    codon usage, sequences (a table of them), labels, genomes (a list of them). FASTA where it is
    none of them: its reader says best what a file is.
    """
    name = Path(file).name.lower()
    for ending in (".gz", ".bgz"):
        name = name.removesuffix(ending)
    ends = ((_BED, "BED"), (_VCF, "VCF"), (_FASTA, "FASTA"))
    by_name = next((kind for some, kind in ends if name.endswith(some)), None)
    if file == STDIN or not os.path.isfile(find_readable(file)):  # stdin can be read once only
        return by_name or "FASTA"
    with open_input(file) as source:
        head = next(source.blocks(), b"")[:_HEAD]
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith((b"##fileformat=VCF", b"BCF")) or by_name == "VCF":
        return "VCF"
    if find_motif_format(file, head):
        return "motifs"
    if by_name == "FASTA" or start.startswith((b">", b"@")) or find_flat_format(head):
        return by_name or "FASTA"
    if start.startswith(b"PAR1"):
        return _find_table(_parquet_columns(file)) or "FASTA"
    if start.startswith(b"{"):
        return "VCF" if b'"pos"' in start.partition(b"\n")[0].lower() else "FASTA"
    try:
        if find_annotation(islice(read_text_lines(file, "text"), _LINES)) is not None:
            return "annotation"
        lines = list(islice(_rows(file), _ROWS))
    except DataError:  # of another encoding, or damaged: its reader says it
        lines = head.decode("latin-1").splitlines()
    return by_name or _find_text_kind(lines, name) or "FASTA"


def _rows(file: str) -> Iterator[str]:
    """The lines that are no comments, and above them the names of columns that follow a #."""
    held: str | None = ""
    for _, text in read_text_lines(file, "text"):
        line = text.strip()
        if line.startswith("#"):
            held = held if held is None else line.lstrip("# ")
        elif line:
            if held and len(_SEPARATOR.split(held)) == len(_SEPARATOR.split(line)) > 1:
                yield held
            held = None
            yield line


def _find_text_kind(lines: list[str], name: str) -> str | None:
    if not lines:
        return None
    fields = [line.split("\t") for line in lines]
    placed = sum(len(row) > 2 and all(map(_DIGITS.fullmatch, row[1:3])) for row in fields)
    if 2 * placed >= len(fields):
        return "BED"
    header = [one.strip().strip('"') for one in _SEPARATOR.split(lines[0])]
    if len(header) > 1 and (kind := _find_table(header)):
        return kind
    if 2 * sum(_CODON.search(line) is not None for line in lines) > len(lines):
        return "codon usage"
    if {len(row) for row in fields} == {2}:
        return "labels"
    return "sequences" if name.endswith(_TABLES) and len(header) > 1 else None


def _find_table(names: Iterable[str]) -> str | None:
    """The kind of a table with columns of these names."""
    from genodiff.data.genomes.listing import COLUMNS
    from genodiff.io.variant_table import has_variants
    from genodiff.tasks.labelled_file import SEQUENCE

    known = [name.lower() for name in names]
    if has_variants(known):
        return "VCF"
    if set(known) & set(SEQUENCE):
        return "sequences"
    return "genomes" if {"path", "url"} & set(known) and set(known) <= {*COLUMNS, "url"} else None


def _parquet_columns(file: str) -> list[str]:
    import polars as pl

    try:
        return list(pl.scan_parquet(file).collect_schema())
    except (pl.exceptions.PolarsError, OSError):
        return []
