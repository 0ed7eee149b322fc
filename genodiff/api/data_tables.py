"""What stands in tables that training and fine-tuning read: for `genodiff data check`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from genodiff.errors import DataError
from genodiff.io.regions import suggest_contig


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
