"""One window in two spellings: what a variant's score is a function of.

    F                   the flanks, which both spellings share
    S_ref, S_alt        the spans, in which they differ; either may be empty

A score depends on the pair, the model and the seed, and on nothing else: not on a file, a contig's
name, a batch or an order. Random draws are keyed by the content of the pair. The key is the same
after swapping the spellings, and of the other strand, so a score changes its sign in the first case
and not at all in the second.
"""

import hashlib
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Logs = NDArray[np.float64]
"""(M, K): logarithms at the M masks of a window, over the K targets."""


@dataclass(frozen=True, eq=False)
class SpellingPair:
    """Ids of a window as the reference and as the alternative has it; flags mark the spans."""

    ref: Ids
    alt: Ids
    ref_span: Flags
    alt_span: Flags

    def __post_init__(self) -> None:
        if self.ref.shape != self.ref_span.shape or self.alt.shape != self.alt_span.shape:
            raise ValueError("spans and spellings differ in length")
        if not np.array_equal(self.ref[~self.ref_span], self.alt[~self.alt_span]):
            raise ValueError("the spellings differ outside their spans")

    @property
    def widths(self) -> tuple[int, int]:
        """How many bases the two spans have."""
        return int(self.ref_span.sum()), int(self.alt_span.sum())

    def swap(self) -> Self:
        """Reference and alternative exchanged."""
        return type(self)(self.alt, self.ref, self.alt_span, self.ref_span)

    def turn(self, complement: Ids) -> Self:
        """The same variant on the other strand."""
        return type(self)(
            complement[self.ref[::-1]],
            complement[self.alt[::-1]],
            self.ref_span[::-1],
            self.alt_span[::-1],
        )

    def orient(self, complement: Ids | None) -> Self:
        """This pair or its other strand: of both the one whose bytes come first.

        A pair and its other strand give the same, so what is computed from it is the same too.
        """
        if complement is None:
            return self
        other = self.turn(complement)
        return self if self._content() <= other._content() else other

    def key(self) -> int:
        """A number below 2^64 from the content, the same for the swapped pair."""
        digest = hashlib.blake2b(digest_size=8)
        for part in self._content():
            digest.update(len(part).to_bytes(8, "little") + part)
        return int.from_bytes(digest.digest(), "little")

    def _content(self) -> list[bytes]:
        of_ref = self.ref.tobytes() + self.ref_span.tobytes()
        of_alt = self.alt.tobytes() + self.alt_span.tobytes()
        return sorted((of_ref, of_alt))
