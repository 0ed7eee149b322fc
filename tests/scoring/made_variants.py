"""Variants of a contig `c1`, made up from its own letters."""

from genodiff.io.faidx import Genome
from genodiff.io.variants import Allele


def take(genome: Genome, start: int, n: int) -> str:
    """The letters of c1[start : start + n]."""
    return genome.fetch("c1", start, start + n).decode().upper()


def change(genome: Genome, start: int, n: int = 1, alt: str | None = None) -> Allele:
    """`alt` in place of `n` bases; without it as many, each a G or C for an A or T, or back."""
    ref = take(genome, start, n)
    return Allele(
        "c1", start, ref, ref.translate(str.maketrans("ACGT", "GTAC")) if alt is None else alt
    )
