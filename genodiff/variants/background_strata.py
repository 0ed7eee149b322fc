"""Which random variants a variant is compared with: its class, and its strata within it.

    class        kind and lengths: snv, mnv2, ins1, del9-16, delins2/3
    strata       from the finest to the coarsest that it may be compared within
      snv        AA[C>T]GT, A[C>T]G: on the strand where REF is C or T
      ins, del   del1:1x4-7: a unit of 1 base, there 4 to 7 times
      others     the class alone

Nothing coarser is used: an insertion into a run of 20 bases is no random member of the insertions
into runs of any length, and its percentile among them would be wrong.

Lengths up to 8 are classes of their own. Longer ones share a class up to the next power of two, and
scores are then compared per base of the longer spelling.
"""

from collections.abc import Iterator
from typing import NamedTuple

from genodiff.alphabet import reverse_complement
from genodiff.io.variants import BASES, Allele
from genodiff.scoring.allele_score import LONGEST_SPAN
from genodiff.scoring.variant_windows import Contigs

_EXACT = 8
_FLANK = 2  # bases on either side of an SNV that its finest stratum knows
_LONGEST_UNIT = 6
_MOST_COPIES = 16
_COPIES = ((0, 0), (1, 1), (2, 3), (4, 7), (8, 11), (12, 15))

Lengths = tuple[int, int]
"""Shortest and longest length of a class, in bases."""


class SizeClass(NamedTuple):
    """Variants of one kind and about the same lengths of REF and ALT, anchor bases left out."""

    kind: str
    ref: Lengths
    alt: Lengths

    @property
    def name(self) -> str:
        """As a stratum is named."""
        if self.kind == "snv":
            return self.kind
        if self.kind == "delins":
            return f"delins{_name(self.ref)}/{_name(self.alt)}"
        return self.kind + _name(max(self.ref, self.alt))

    @property
    def per_base(self) -> bool:
        """Whether scores are compared per base of the longer spelling."""
        return max(self.ref[1], self.alt[1]) > _EXACT


def find_class(ref: int, alt: int) -> SizeClass | None:
    """The class of so many bases of REF and ALT, None for what is too long to be scored."""
    if max(ref, alt) > LONGEST_SPAN:
        return None
    kind = Allele("", 0, "A" * ref, "A" * alt).kind
    return SizeClass(kind, _find_lengths(ref), _find_lengths(alt))


def scale_score(allele: Allele, size: SizeClass, value: float) -> float:
    """The score as it is compared within its class."""
    return value / max(len(allele.ref), len(allele.alt)) if size.per_base else value


def list_strata(allele: Allele, size: SizeClass, genome: Contigs) -> list[str]:
    """The strata of a variant, from the finest.

    An SNV has none where a contig ends beside it, or a neighbour is no A, C, G or T.
    """
    if allele.kind == "snv":
        return list(_list_contexts(allele, genome))
    if allele.kind in ("ins", "del"):
        return [_find_repeat(allele, size, genome)]
    return [size.name]


def _list_contexts(allele: Allele, genome: Contigs) -> Iterator[str]:
    start = max(0, allele.start - _FLANK)
    end = min(genome.contigs[allele.chrom], allele.end + _FLANK)
    letters = genome.fetch(allele.chrom, start, end).decode("latin-1").upper()
    left, right = letters[: allele.start - start], letters[allele.end - start :]
    ref, alt = allele.ref, allele.alt
    if ref in "AG":
        left, right = _turn(right), _turn(left)
        ref, alt = _turn(ref), _turn(alt)
    for n in range(_FLANK, 0, -1):
        near = left[-n:]
        if len(near) == len(right[:n]) == n and BASES.issuperset(near + right[:n]):
            yield f"{near}[{ref}>{alt}]{right[:n]}"


def _find_repeat(allele: Allele, size: SizeClass, genome: Contigs) -> str:
    letters = allele.ref or allele.alt
    unit = find_unit(letters)
    reach = max(len(letters), _MOST_COPIES * len(unit))
    end = min(genome.contigs[allele.chrom], allele.start + reach)
    # An allele stands at the left end of its repeat, so all copies are to the right of its start
    there = genome.fetch(allele.chrom, allele.start, end).decode("latin-1").upper()
    copies = 0
    while there.startswith(unit, copies * len(unit)):
        copies += 1
    low, high = next((some for some in _COPIES if some[0] <= copies <= some[1]), (_MOST_COPIES, 0))
    times = f"{low}+" if not high and low else _name((low, high))
    known = str(len(unit)) if len(unit) <= _LONGEST_UNIT else f"{_LONGEST_UNIT + 1}+"
    return f"{size.name}:{known}x{times}"


def _turn(letters: str) -> str:
    return str(reverse_complement(letters))


def find_unit(letters: str) -> str:
    """The shortest unit that `letters` are whole copies of: AC of ACAC."""
    n = len(letters)
    width = (letters + letters).find(letters, 1)
    return letters[:width] if 0 < width < n else letters


def _find_lengths(n: int) -> Lengths:
    if n <= _EXACT:
        return n, n
    top = 1 << (n - 1).bit_length()
    return top // 2 + 1, top


def _name(lengths: Lengths) -> str:
    low, high = lengths
    return str(low) if low == high else f"{low}-{high}"
