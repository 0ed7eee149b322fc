"""Variants of a genome: records as they stand in a file, and alleles as they are scored.

An `Allele` is one ALT of one record. `start` counts from 0, and the stretch that changes is
contig[start : start + len(ref)]. What both spellings have in common at either end is trimmed, and
an insertion or deletion stands as far to the left as it can (`variant_alignment`), so two spellings
of one indel are one `Allele`. No anchor base is kept: an insertion has an empty `ref`, a deletion
an empty `alt`.
"""

from dataclasses import dataclass
from enum import StrEnum
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


class Unscorable(StrEnum):
    """Why an ALT has no score. The value is its word in FILTER and in tables."""

    REF = "ref_mismatch"
    CONTIG = "unknown_contig"
    OUTSIDE = "outside_contig"
    SYMBOLIC = "symbolic"
    BREAKEND = "breakend"
    STAR = "spanning_deletion"
    AMBIGUOUS = "ambiguous_base"
    SAME = "alt_is_ref"
    NO_ALT = "no_alt"
    FAILED = "not_scored"

    @property
    def contradicts(self) -> bool:
        """Whether the record is at odds with the genome, so that its file may be of another."""
        return self in (Unscorable.REF, Unscorable.CONTIG, Unscorable.OUTSIDE)

    @property
    def meaning(self) -> str:
        """A description of the reason, as headers give it."""
        return _MEANINGS[self]


_MEANINGS = {
    Unscorable.REF: "REF is not what the FASTA has there",
    Unscorable.CONTIG: "the FASTA has no contig of this name",
    Unscorable.OUTSIDE: "POS or REF is outside the contig",
    Unscorable.SYMBOLIC: "ALT is symbolic, such as <DEL>",
    Unscorable.BREAKEND: "ALT is a breakend",
    Unscorable.STAR: "ALT is * (a deletion that spans the site)",
    Unscorable.AMBIGUOUS: "REF or ALT has a letter other than A, C, G and T",
    Unscorable.SAME: "ALT is the same as REF",
    Unscorable.NO_ALT: "there is no ALT",
    Unscorable.FAILED: "the model gives no score here (see the flags)",
}


@dataclass(frozen=True, slots=True)
class VariantRecord:
    """One row of a file of variants, its letters as they stand there. `pos` counts from 1."""

    line: int
    chrom: str
    pos: int
    id: str
    ref: str
    alts: tuple[str, ...]
    rest: tuple[str, ...] = ()
    """The columns after ALT, as they stand (QUAL, FILTER, INFO, FORMAT, samples)."""

    @property
    def place(self) -> str:
        """CHROM:POS, as messages name the record."""
        return f"{self.chrom}:{self.pos}"

    def is_at_telomere(self, length: int) -> bool:
        """Whether POS is one of those that VCF has beside a contig of `length` bases: 0 or N + 1.

        Breakends and symbolic alleles may stand there.
        """
        return self.pos in (0, length + 1)
