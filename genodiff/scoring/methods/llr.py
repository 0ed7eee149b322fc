"""`llr`: the bases of a span, masked together (`score_llr`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genodiff.scoring.methods import SCORE_METHODS, ScoreMethod, Widths
from genodiff.scoring.span_scores import Steps, score_llr
from genodiff.scoring.spelling_pair import SpellingPair

if TYPE_CHECKING:
    from genodiff.runs.training_memory import Place
    from genodiff.scoring.masked_reader import MaskedReader
    from genodiff.scoring.methods import ScoreOptions


@SCORE_METHODS.register("llr")
class Llr(ScoreMethod):
    """The masked marginal: exact for one base, blind to what the bases of a span share."""

    help = "the bases that differ, masked together"
    taken_for = "for one base"
    takes_sites = True

    def fits(self, widths: Widths) -> bool:
        """One base for another."""
        return widths == (1, 1)

    def windows(self, ref: int, alt: int) -> int:
        """One for spans of equal length, else one for each that has a base."""
        return 1 if ref == alt else (ref > 0) + (alt > 0)

    def start(
        self, reader: MaskedReader, pair: SpellingPair, options: ScoreOptions, place: Place | None
    ) -> Steps:
        """See `score_llr`."""
        return score_llr(reader, pair)
