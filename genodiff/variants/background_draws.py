"""Random variants of a genome: what the score of a variant is compared with.

Variant number i of a class is a function of (genome, seed, class, i). Its place is uniform over the
genome. An SNV's place gives all three of its alternatives. A deletion removes what stands there.
Half of the insertions repeat what stands to their right, and the others copy a stretch from another
random place. So do MNVs and delins with what they put in. All are aligned to the left, and what has
another class then is drawn again.
"""

import hashlib
from collections.abc import Iterator

import numpy as np

from genodiff.counter import Purpose, generator
from genodiff.io.variants import BASES, Allele, align_left
from genodiff.scoring.variant_windows import Contigs
from genodiff.variants.background_strata import Lengths, SizeClass, find_class

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
        n_ref = _choose(rng, self.size.ref)
        n_alt = n_ref if self.size.kind == "mnv" else _choose(rng, self.size.alt)
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


def _choose(rng: np.random.Generator, lengths: Lengths) -> int:
    return int(rng.integers(lengths[0], lengths[1], endpoint=True))
