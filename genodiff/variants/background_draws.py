"""Random variants of a genome: what the score of a variant is compared with.

Variant number i of a class is a function of (genome, seed, class, i). Its place is uniform over the
genome. An SNV's place gives all three of its alternatives. A deletion removes what stands there.
Half of the insertions repeat what stands to their right, and the others copy a stretch from another
random place. So do MNVs and delins with what they put in. All are aligned to the left, and what has
another class then is drawn again.

Which random variants a variant is compared with: its class, and its strata within it.

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

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from genodiff.alphabet import reverse_complement
from genodiff.counter import Purpose, generator
from genodiff.io.variants import BASES, Allele, align_left
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


_TRIES = 30  # for each variant, before it is given up


class VariantDraws:
    """The random variants of one class of a genome."""

    def __init__(self, genome: Contigs, size: SizeClass, seed: int) -> None:
        self.genome, self.size, self.seed = genome, size, seed
        self._names = list(genome.contigs)
        self._ends = np.cumsum([genome.contigs[name] for name in self._names])
        digest = hashlib.blake2b(size.name.encode(), digest_size=8).digest()
        self._code = int.from_bytes(digest, "little")

    def draw(self, number: int) -> list[Allele]:
        """The variant of this number: one, or the three SNVs of one place.

        Empty where the genome has none of this class, or hardly any.
        """
        rng = generator(self.seed, Purpose.VARIANT_BACKGROUND, number, self._code)
        for _ in range(_TRIES):
            found = list(self._propose(rng))
            if found:
                return found
        return []

    def _propose(self, rng: np.random.Generator) -> Iterator[Allele]:
        n_ref = n_alt = int(rng.integers(*self.size.ref, endpoint=True))
        if self.size.kind != "mnv":
            n_alt = int(rng.integers(*self.size.alt, endpoint=True))
        contig, start = self._choose_place(rng)
        ref = self._read(contig, start, n_ref)
        if ref is None:
            return
        if self.size.kind == "snv":
            yield from (Allele(contig, start, ref, alt) for alt in "ACGT" if alt != ref)
            return
        alt: str | None = ""
        if n_alt:
            nearby = not n_ref and rng.random() < 0.5
            alt = self._read(*((contig, start) if nearby else self._choose_place(rng)), n_alt)
        if alt is None:
            return

        def fetch(first: int, last: int) -> str:
            return self.genome.fetch(contig, first, last).decode("latin-1").upper()

        allele = Allele(contig, *align_left(start, ref, alt, fetch))
        if find_class(len(allele.ref), len(allele.alt)) == self.size:
            yield allele

    def _choose_place(self, rng: np.random.Generator) -> tuple[str, int]:
        place = int(rng.random() * self._ends[-1])
        which = int(np.searchsorted(self._ends, place, side="right"))
        return self._names[which], place - int(self._ends[which - 1] if which else 0)

    def _read(self, contig: str, start: int, n: int) -> str | None:
        """`n` letters, None where they are not all A, C, G and T."""
        if start + n > self.genome.contigs[contig]:
            return None
        letters = self.genome.fetch(contig, start, start + n).decode("latin-1").upper()
        return letters if BASES.issuperset(letters) else None
