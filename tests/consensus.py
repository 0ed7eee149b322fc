"""The letters of a haplotype, as `bcftools consensus` writes them: what tests compare with.

What overlaps a change that is applied already is left out; an insertion or deletion right behind it
is not.
"""

from collections.abc import Iterable
from typing import NamedTuple

from genodiff.errors import DataError
from genodiff.io.variants import BASES, VariantRecord


class Change(NamedTuple):
    """One record's REF replaced by one ALT; `start` counts from 0."""

    start: int
    ref: str
    alt: str

    @property
    def end(self) -> int:
        """Where its REF ends."""
        return self.start + len(self.ref)


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
