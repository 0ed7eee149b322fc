"""`nelbo`: the bound of the whole window, by random masks (`score_nelbo`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genodiff.scoring.methods import SCORE_METHODS, ScoreMethod, Widths
from genodiff.scoring.span_scores import Steps
from genodiff.scoring.spelling_pair import SpellingPair
from genodiff.scoring.window_scores import CONTROLS, DRAWS, FIRST_ROUNDS, score_nelbo

if TYPE_CHECKING:
    from genodiff.runs.training_memory import Place
    from genodiff.scoring.masked_reader import MaskedReader
    from genodiff.scoring.methods import ScoreOptions

LEAST_WINDOWS = CONTROLS + 2 * DRAWS * FIRST_ROUNDS
"""Windows that a score takes at least."""
STANDARD_ERROR = 0.25
"""Standard error, in nats, that a score goes on to, unless told otherwise."""
MAX_EVALUATIONS = 512
"""Evaluations of one variant after which a score stops, unless told otherwise."""


@SCORE_METHODS.register("nelbo")
class Nelbo(ScoreMethod):
    """What a variant does to its span and to all around it."""

    help = "the bound of the whole window"
    taken_for = "beyond"
    until_se = True

    def fits(self, widths: Widths) -> bool:
        """All that is left."""
        return True

    def windows(self, ref: int, alt: int) -> int:
        """Whatever the spans, at least."""
        return LEAST_WINDOWS

    def start(
        self, reader: MaskedReader, pair: SpellingPair, options: ScoreOptions, place: Place | None
    ) -> Steps:
        """See `score_nelbo`."""
        return score_nelbo(
            reader, pair, options.seed, options.se, options.max_evaluations - CONTROLS
        )
