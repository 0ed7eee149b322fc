"""`chain`: the bases of a span one after the other, averaged over orders (`score_chain`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genodiff.scoring.methods import SCORE_METHODS, ScoreMethod, Widths
from genodiff.scoring.span_scores import Steps, score_chain, score_llr
from genodiff.scoring.spelling_pair import SpellingPair

if TYPE_CHECKING:
    from genodiff.runs.training_memory import Place
    from genodiff.scoring.masked_reader import MaskedReader
    from genodiff.scoring.methods import ScoreOptions

LONGEST_CHAIN = 8
"""Bases of the longest span that `auto` scores by chain."""
ORDERS = 8
"""Orders that are drawn where not all are summed."""


@SCORE_METHODS.register("chain")
class SpanChain(ScoreMethod):
    """The span given its flanks, in all orders or in some that are drawn."""

    help = "unmasked one after the other"
    taken_for = f"for spans of up to {LONGEST_CHAIN}"
    takes_sites = True

    def fits(self, widths: Widths) -> bool:
        """Spans of up to `LONGEST_CHAIN` bases."""
        return max(widths) <= LONGEST_CHAIN

    def windows(self, ref: int, alt: int) -> int:
        """A mask for each part of a span that is still unknown; equal spans share the first."""
        return sum(min(2**m - 1, ORDERS * m) for m in (ref, alt)) - (ref == alt)

    def start(
        self, reader: MaskedReader, pair: SpellingPair, options: ScoreOptions, place: Place | None
    ) -> Steps:
        """See `score_chain`; one base has one order, which is that of `score_llr`."""
        if pair.widths == (1, 1):
            return score_llr(reader, pair)
        return score_chain(reader, pair, options.seed, ORDERS)
