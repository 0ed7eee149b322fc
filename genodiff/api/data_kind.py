"""What `genodiff data check` judges a file as, by its content; and the rows of the tables that
training and fine-tuning read.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from genodiff.errors import DataError
from genodiff.io.annotation_rows import find_annotation, read_annotation
from genodiff.io.file_kinds import find_motif_format, find_readable
from genodiff.io.genbank import find_flat_format
from genodiff.io.input_file import STDIN, open_input
from genodiff.io.regions import suggest_contig
from genodiff.io.text_file import digest_text
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


def read_label_rows(path: str, contigs: Mapping[str, int] | None) -> Iterator[dict[str, Any]]:
    """The rows of a table or BED file of labels, as `genodiff train --labels` reads it.

    contig, start, end (None of a whole contig) and label. With `contigs`, every row must lie within
    its contig. Raises `DataError` naming the line.
    """
    from genodiff.data.labels import read_labels

    table = read_labels(path)
    columns = (table.contigs, table.starts, table.ends, table.labels, table.lines)
    for contig, start, end, label, line in zip(*columns, strict=True):
        if contigs is not None and contig not in contigs:
            what = f"unknown contig '{contig}': not in the FASTA"
            fix = suggest_contig(contig, dict(contigs))
            raise DataError(what, file=path, line=int(line), fix=fix)
        if contigs is not None and end > contigs[contig]:
            what = f"the end {end} is past the end of {contig} (length {contigs[contig]})"
            raise DataError(what, file=path, line=int(line), fix="give the right FASTA")
        last = None if int(end) < 0 else int(end)
        place = {"contig": contig, "start": int(start), "end": last}
        yield place | {"label": table.classes[label]}


def read_sequence_rows(path: str) -> Iterator[dict[str, Any]]:
    """name, length and label of the rows of a table of sequences, as fine-tuning reads it.

    The label is None in a table without a column of labels. Raises `DataError` naming the line.
    """
    from genodiff.tasks.labelled_file import read_examples
    from genodiff.tasks.labels import LABEL
    from genodiff.tasks.table import read_table
    from genodiff.tasks.unlabelled import read_queries

    if not any(name.strip().lower() in LABEL for name in read_table(path).cells):
        for query in read_queries(Path(path)):
            yield {"name": query.name, "length": len(query.sequence), "label": None}
        return
    examples, _, classes = read_examples(path)
    columns = examples.names, examples.sequences, examples.labels
    for name, sequence, label in zip(*columns, strict=True):
        said = classes[int(label)] if classes else float(label)
        yield {"name": name, "length": len(sequence), "label": said}


def read_genome_rows(path: str) -> Iterator[dict[str, Any]]:
    """The lines of a list of genomes, as `genodiff train --genomes` reads it."""
    from genodiff.data.genomes.listing import read_genome_list

    for row in sorted(read_genome_list(path).rows, key=lambda one: one.line):
        yield {"name": row.name, "path": row.path, "species": row.species, "split": row.split}


def read_usage_rows(path: str) -> Iterator[dict[str, Any]]:
    """The codons of a table of codon usage."""
    from genodiff.constraints.codon_usage import read_codon_usage

    yield from ({"codon": c, "frequency": f} for c, f in read_codon_usage(path, 1))


def read_text_row(path: str) -> Iterator[dict[str, Any]]:
    """One row: the name, length (characters) and sha256 of a text."""
    found = digest_text(path)
    yield {"name": Path(path).name, "length": found.characters, "sha": found.sha}


def read_interval_rows(file: str, contigs: dict[str, int] | None) -> Iterator[dict[str, Any]]:
    """The rows of a BED file, with their length; splits must not overlap."""
    from genodiff.io.bed import check_splits, read_bed  # polars

    table = read_bed(file, contigs)
    check_splits(table, file)
    lengths = table.select(
        "contig", "start", "end", "name", "strand", length=table["end"] - table["start"]
    )
    yield from lengths.iter_rows(named=True)


def read_annotation_rows(file: str, contigs: dict[str, int] | None) -> Iterator[dict[str, Any]]:
    for row in read_annotation(file, contigs, over_origin=True):
        shown = ("contig", "start", "end", "name", "strand", "type")
        yield {key: getattr(row, key) for key in shown} | {"length": row.end - row.start}
