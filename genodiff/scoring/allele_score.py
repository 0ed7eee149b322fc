"""The score of one allele, as every room passes it on. No torch."""

from collections.abc import Sequence
from typing import NamedTuple, Self

from genodiff.io.variants import Allele

LONGEST_SPAN = 1024
"""Bases of the longest allele that is scored unless another limit is asked for, and of the stretch
that the alleles of a haplotype cover."""
TOO_LONG = "too_long"
Item = Allele | Sequence[Allele]
"""What is scored: an allele, or the alleles of one haplotype."""


class AlleleScore(NamedTuple):
    """The score of one allele or haplotype, in nats; positive where the alternative is likelier.

    `value` is None where there is none, and then `flags` begins with the reason; else it holds what
    to know about the score. `se` is over random draws, 0.0 where nothing was drawn. The window is
    [start, end) of the contig, 0-based.
    """

    value: float | None
    se: float | None
    method: str
    start: int
    end: int
    evaluations: int  # windows that the value rests on; a shared one counts for each
    flags: tuple[str, ...] = ()
    doubled: float | None = None  # the value at double context
    votes: float | None = None  # of the relatives, where the model has some and it is of one base
    ancestral: float | None = None  # log-odds that ALT is the ancestral base, and not REF
    rs: float | None = None  # rejected substitutions of the site

    @classmethod
    def without(cls, *reasons: str) -> Self:
        """That of an allele that has none."""
        return cls(None, None, "", 0, 0, 0, reasons)
