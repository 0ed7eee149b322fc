"""Features of GenBank and EMBL records: their letters, and where these stand.

A feature is read in its own direction, as Biopython's `extract` gives it: on the - strand it is the
reverse complement. The parts of a `join` or an `order` follow one another: a spliced CDS is whole.
"""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from Bio.Seq import Seq

from genodiff.errors import DataError, UsageError
from genodiff.io.annotation_rows import FeatureChoice
from genodiff.io.fasta import check_letters
from genodiff.io.genbank import FlatRecord, SeqRecord, open_text
from genodiff.io.text_lines import find_hidden

log = logging.getLogger("genodiff")

NAMES = ("gene", "locus_tag", "label", "product", "protein_id")
"""Qualifiers that name a feature; the first that it has is its name."""


class Feature(NamedTuple):
    """A feature's letters in its own direction, and its parts in that order."""

    contig: str
    name: str
    letters: bytes
    parts: tuple[tuple[int, int, int], ...]
    """(start, end, strand) of each part: 0-based, half-open; strand 1 or -1."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The interval of the contig that holds `letters[start:end]`, 0-based and half-open."""
        ends: list[int] = []
        before = 0
        for low, high, strand in self.parts:
            left, right = max(start - before, 0), min(end - before, high - low)
            if left < right:
                ends += (low + left, low + right) if strand > 0 else (high - right, high - left)
            before += high - low
        return min(ends), max(ends)


def read_features(
    given: str | Path | SeqRecord | Sequence[SeqRecord], wanted: Sequence[str]
) -> Iterator[Feature]:
    """The features `wanted`, each `TYPE` or `TYPE=NAME`, in the order of the records.

    `given` is a GenBank or EMBL file, or records of Biopython. A name is that of a gene, locus tag,
    label, product or protein. Raises `DataError`; `UsageError` for what no record has.
    """
    shown = str(given) if isinstance(given, str | Path) else ""
    choice = FeatureChoice(wanted)
    for record in _records(given):
        check_letters(record.sequence, record.name, shown or None)
        for feature in record.parsed.features:
            names = [v for key in NAMES for v in feature.qualifiers.get(key, ())]
            if choice.takes(feature.type, names):
                name = names[0].strip() if names else feature.type
                if spoilt := find_hidden(name):
                    what = f"the name of a {feature.type} {spoilt[0]}"
                    raise DataError(what, file=shown or None, line=record.line or None,
                                    record=record.name, fix=spoilt[1])  # fmt: skip
                read = _read(record, feature, name, shown or None)
                if read is not None:
                    yield read
    choice.check_found(shown or "the records", "no feature of type")


def _records(given: str | Path | SeqRecord | Sequence[SeqRecord]) -> Iterator[FlatRecord]:
    if not isinstance(given, str | Path):
        records: Any = [given] if hasattr(given, "features") else given
        for record in records:
            if not hasattr(record, "features"):
                fix = "give Bio.SeqRecord objects"
                raise UsageError(f"a {type(record).__name__} has no features", fix=fix)
            yield FlatRecord(record.id, bytes(record.seq).upper(), 0, record)
        return
    with open_text(given, "GenBank") as source:
        if not source.flat:
            what = "has no features: it is neither GenBank nor EMBL"
            fix = "give such a file, or intervals with --bed"
            raise DataError(what, file=source.shown, fix=fix)
        yield from source.records


def _read(record: FlatRecord, feature: SeqRecord, name: str, shown: str | None) -> Feature | None:
    parts: list[tuple[int, int, int]] = []

    def fault(why: str) -> DataError:
        what = f"the {feature.type} '{name}' {why}"
        return DataError(what, file=shown, line=record.line or None, record=record.name,
                         fix="correct its location, or leave it out")  # fmt: skip

    for part in feature.location.parts:
        if part.ref is not None:
            raise fault(f"lies in another record, {part.ref}")
        try:
            start, end = int(part.start), int(part.end)
        except TypeError:
            raise fault("has an unknown position") from None
        if not 0 <= start <= end <= len(record.sequence):
            raise fault(f"is not within the record's {len(record.sequence):,} bases")
        if start < end:
            parts.append((start, end, -1 if part.strand == -1 else 1))
    if not parts:
        log.warning("%s: the %s '%s' has no base and is left out", shown, feature.type, name)
        return None
    letters = bytes(feature.location.extract(Seq(record.sequence)))
    return Feature(record.name, name, letters, tuple(parts))
