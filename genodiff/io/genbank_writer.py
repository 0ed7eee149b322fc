"""GenBank records of designed sequences, written by Biopython.

A record that was read from a GenBank or EMBL file keeps its features and their qualifiers, its
comments, references and topology: SnapGene's and Benchling's labels and colours are qualifiers. A
design has its source's length, so every location stays valid.
"""

import copy
import io
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from Bio import SeqIO
from Bio.Seq import Seq
from Bio.SeqFeature import SeqFeature, SimpleLocation

from genodiff.errors import DataError
from genodiff.io.genbank import SeqRecord, open_text

_LOCUS = 16  # the longest name that every reader of a LOCUS line takes


class Mark(NamedTuple):
    """A feature to add: a half-open interval, its key and its qualifiers."""

    start: int
    end: int
    key: str
    qualifiers: Mapping[str, str]


def read_annotated(path: str | Path) -> dict[str, SeqRecord]:
    """Read the records of a GenBank or EMBL file, by name; {} for a file of another format."""
    with open_text(path, "GenBank") as source:
        return {one.name: one.parsed for one in source.records}


def format_genbank(
    name: str,
    description: str,
    sequence: bytes,
    marks: Sequence[Mark] = (),
    *,
    source: SeqRecord | None = None,
    circular: bool = False,
) -> bytes:
    """Format a sequence with features as one GenBank record.

    `source`: a parsed record of the same length whose annotation is kept; without its date, today's
    (UTC). Raises `DataError` for another length.

    >>> format_genbank("toy", "", b"ACGT", [Mark(1, 2, "variation", {"replace": "c"})]).split()[1]
    b'toy'
    """
    if source is not None and len(source.seq) != len(sequence):
        raise DataError(f"has {len(source.seq):,} bases, its design {len(sequence):,}", record=name)
    record: Any = SeqIO.SeqRecord(Seq("")) if source is None else copy.copy(source)
    record.id = name
    record.name = name if source is None or len(name) <= _LOCUS else source.name
    record.letter_annotations = {}
    record.seq = Seq(sequence)
    record.description = description or (source.description if source is not None else name)
    today = datetime.now(UTC).date()
    common = {"molecule_type": "DNA", "data_file_division": "SYN", "date": today}
    record.annotations = common | record.annotations
    if circular or "topology" not in record.annotations:
        record.annotations["topology"] = "circular" if circular else "linear"
    added = [
        SeqFeature(SimpleLocation(mark.start, mark.end, 1), mark.key,
                   qualifiers={key: [text] for key, text in mark.qualifiers.items()})
        for mark in marks
    ]  # fmt: skip
    record.features = [*record.features, *added]
    out = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a name longer than 16 letters, which readers take
        SeqIO.write(record, out, "genbank")
    return out.getvalue().encode("utf-8", "surrogateescape")


def mark_changes(before: bytes, after: bytes, start: int = 0) -> list[Mark]:
    """Mark each run of changed bases, with the bases before and after.

    `/replace` would name the former bases as those to put in: programs that apply it undo the edit.

    >>> mark_changes(b"ACGTA", b"ATGTA")
    [Mark(start=1, end=2, key='variation', qualifiers={'label': 'c>t', 'note': 'edited: c>t'})]
    """
    pairs = enumerate(zip(before.upper(), after.upper(), strict=True))
    changed = [i for i, (old, new) in pairs if old != new]
    marks = []
    for _, run in groupby(enumerate(changed), lambda pair: pair[1] - pair[0]):
        at = [i for _, i in run]
        old, new = (text[at[0] : at[-1] + 1].decode("ascii").lower() for text in (before, after))
        kind, change = "edited" if set(old) <= set("acgt") else "filled", f"{old}>{new}"
        about = {"label": change, "note": f"{kind}: {change}"}
        marks.append(Mark(start + at[0], start + at[-1] + 1, "variation", about))
    return marks
