"""Haplotypes of a sample: which alleles stand on one copy of a chromosome, and its letters.

GT gives the alleles of a record in the order of the copies. `0|1` says which copy is which, within
a phase set (FORMAT/PS; without it, the contig). What overlaps a change that is applied already is
left out, as `bcftools consensus` does; an insertion or deletion right behind it is not.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from genodiff.errors import DataError
from genodiff.io.variants import BASES, VariantRecord

_FORMAT = 3  # place of FORMAT in `VariantRecord.rest`


class Genotype(NamedTuple):
    """The alleles of one sample at one record: 0 is REF, None a missing call."""

    alleles: tuple[int | None, ...]
    phased: bool
    phase_set: str
    """FORMAT/PS, empty where there is none."""


class Change(NamedTuple):
    """One record's REF replaced by one ALT; `start` counts from 0."""

    start: int
    ref: str
    alt: str

    @property
    def end(self) -> int:
        """Where its REF ends."""
        return self.start + len(self.ref)


def read_genotype(record: VariantRecord, sample: int) -> Genotype | None:
    """The genotype of the sample of this number (from 0), None where the record has no GT.

    Raises `DataError` for a GT that is none, or that names an ALT which is not there.
    """
    if len(record.rest) <= _FORMAT:
        return None
    names, told = record.rest[_FORMAT].split(":"), record.rest[_FORMAT + 1 + sample].split(":")
    values = dict(zip(names, told, strict=False))  # the last values may be left out
    text = values.get("GT")
    if text is None:
        return None
    alleles = []
    for one in re.split(r"[/|]", text.lstrip("/|")):
        if one != "." and not (one.isdecimal() and int(one) <= len(record.alts)):
            what = f"GT {text} names an allele that is not there"
            raise DataError(what, line=record.line, record=record.place, fix="correct the genotype")
        alleles.append(None if one == "." else int(one))
    phase_set = values.get("PS", ".")
    phased = "/" not in text and (len(alleles) > 1 or phase_set != ".")
    return Genotype(tuple(alleles), phased, "" if phase_set == "." else phase_set)


def choose_change(record: VariantRecord, allele: int | None) -> Change | None:
    """What an allele of a record changes: None for REF, a missing call, and symbolic alleles."""
    if not allele:
        return None
    alt = record.alts[allele - 1].upper()
    if not alt or not BASES.issuperset(alt):
        return None
    return Change(record.pos - 1, record.ref.upper(), alt)


def leave_out_overlaps(changes: Iterable[Change]) -> list[Change]:
    """Those that can be applied together, in order: the first of what overlaps is kept."""
    kept: list[Change] = []
    frozen, inserted = -1, False  # the last base that is changed, and whether by an insertion
    for change in changes:
        grows = len(change.alt) - len(change.ref)
        if change.start <= frozen:
            anchored = change.ref[:1] == change.alt[:1]
            if change.start < frozen or not anchored or grows == 0 or inserted:
                continue
            # Its anchor base is changed already; the rest of it comes behind
            change = Change(change.start + 1, change.ref[1:], change.alt[1:])
        kept.append(change)
        frozen, inserted = max(frozen, change.end - 1), grows > 0
    return kept


def apply_changes(letters: str, start: int, changes: Iterable[Change]) -> str:
    """`letters`, which begin at `start` of their contig, with changes that do not overlap.

    Raises `DataError` where REF is not what stands there.
    """
    parts, at = [], 0
    for change in changes:
        first, last = change.start - start, change.end - start
        if letters[first:last].upper() != change.ref or first < at:
            what = f"REF {change.ref} is not what stands there"
            raise DataError(what, record=str(change.start + 1), fix="give the right genome")
        parts += [letters[at:first], change.alt]
        at = last
    return "".join([*parts, letters[at:]])
