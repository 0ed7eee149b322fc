"""Variants of a genome: one ALT of one record as the two spellings of one stretch of a contig.

`start` counts from 0. The stretch is contig[start : start + len(ref)]. What both spellings have in
common at either end is trimmed, and an insertion or deletion stands as far to the left as it can
(`variant_alignment`), so two spellings of one indel are one `Allele`. No anchor base is kept: an
insertion has an empty `ref`, a deletion an empty `alt`.
"""

from dataclasses import dataclass
from typing import Literal

BASES = frozenset("ACGT")
Kind = Literal["snv", "mnv", "ins", "del", "delins"]


@dataclass(frozen=True)
class Allele:
    """One alternative spelling of contig[start : start + len(ref)], in upper-case A, C, G, T."""

    chrom: str
    start: int
    ref: str
    alt: str

    @property
    def end(self) -> int:
        """The end of the reference's stretch (0-based, half-open)."""
        return self.start + len(self.ref)

    @property
    def kind(self) -> Kind:
        """What the lengths of `ref` and `alt` say."""
        if len(self.ref) == len(self.alt):
            return "snv" if len(self.ref) == 1 else "mnv"
        if not self.ref:
            return "ins"
        return "delins" if self.alt else "del"

    def swapped(self) -> "Allele":
        """The change back: reference and alternative exchanged."""
        return Allele(self.chrom, self.start, self.alt, self.ref)
