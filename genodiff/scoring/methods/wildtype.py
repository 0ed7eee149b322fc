"""`wildtype`: the bases of REF seen, for networks with a teacher (`training/teacher.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from genodiff.scoring.methods import SCORE_METHODS, ScoreMethod
from genodiff.scoring.span_scores import Estimate, Steps, sum_logs
from genodiff.scoring.spelling_pair import SpellingPair

if TYPE_CHECKING:
    from genodiff.runs.training_memory import Place
    from genodiff.scoring.masked_reader import MaskedReader
    from genodiff.scoring.methods import ScoreOptions


@SCORE_METHODS.register("wildtype")
class Wildtype(ScoreMethod):
    """The wild-type marginals of Meier et al. 2021: log p(alt) - log p(ref), REF in its place.

    All substitutions near one another come from one evaluation. Of REF and ALT, REF is the one that
    is seen: the score of the way back is another one.
    """

    help = "the network alone, REF seen (substitutions; networks trained with --teacher)"
    takes_sites = True
    visible = True

    def windows(self, ref: int, alt: int) -> int:
        """One, for substitutions."""
        return int(ref == alt)

    def start(
        self, reader: MaskedReader, pair: SpellingPair, options: ScoreOptions, place: Place | None
    ) -> Steps:
        """The sum over the bases that differ; a value of NaN for indels."""
        if pair.widths[0] != pair.widths[1]:
            return Estimate(np.nan, 0.0, note="wildtype_is_of_substitutions")
        of_ref = yield [reader.hide(pair.ref, pair.ref_span)]
        alt = sum_logs(reader, of_ref[0], pair.alt[pair.alt_span])
        ref = sum_logs(reader, of_ref[0], pair.ref[pair.ref_span])
        return Estimate(alt - ref, 0.0, windows=1)
