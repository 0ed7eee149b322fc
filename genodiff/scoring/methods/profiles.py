"""`profiles`: which bases a position tolerates, and what an indel costs, by relatives alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from genodiff.scoring.methods import SCORE_METHODS
from genodiff.scoring.methods.votes import UNKNOWN, OfRelatives
from genodiff.scoring.span_scores import Estimate, Steps

SECONDS = 10.0
"""About what the fit of the classes takes, of one core."""

if TYPE_CHECKING:
    from genodiff.memory.tables import Floats
    from genodiff.memory.text import Codes
    from genodiff.runs.related_reader import RelatedReader
    from genodiff.runs.training_memory import Place
    from genodiff.scoring.masked_reader import MaskedReader
    from genodiff.scoring.methods import ScoreOptions
    from genodiff.scoring.spelling_pair import SpellingPair


@SCORE_METHODS.register("profiles")
class Profiles(OfRelatives):
    """A likelihood ratio that knows the spectrum of mutations, the rate, the tolerated bases, the
    reading frame (`memory/profiles.py`), and all alignments of an indel (`memory/spellings.py`).
    """

    help = "tolerance under a mutation-selection model of the related genomes, with reading frame"

    def time_to_prepare(self, network: RelatedReader | None) -> float:
        """Of the classes, which are fitted once and cached."""
        fit = None if network is None else network.fit_profiles
        return 0.0 if fit is not None and fit.is_ready else SECONDS

    def windows(self, ref: int, alt: int) -> int:
        """One, in which relatives are searched."""
        return 1

    def read_around(self, network: RelatedReader, over: Floats, windows: Codes) -> Floats:
        """The log-likelihood of each base, beside how quickly the positions around change."""
        return network.read_profiles(over, windows)

    def count(
        self, network: RelatedReader, over: Floats, ref: int, around: Floats | None
    ) -> Floats:
        """By classes of base profiles, summed on the tree."""
        assert around is not None
        return network.score_profiles(over, ref, around)

    def start(
        self, reader: MaskedReader, pair: SpellingPair, options: ScoreOptions, place: Place | None
    ) -> Steps:
        """One base as `OfRelatives`; other spans by all alignments of both spellings."""
        if pair.widths == (1, 1):
            return (yield from super().start(reader, pair, options, place))
        related = cast(Any, reader.related)
        codes = (reader.columns(one) for one in (pair.ref, pair.alt))
        ref, alt = (np.where(one < 0, UNKNOWN, one).astype(np.uint8) for one in codes)
        shared = ~pair.ref_span
        first = int(shared.cumprod().sum())
        last = len(ref) - int(shared[::-1].cumprod().sum())
        value = related.compare_spellings(ref, alt, (first, max(first, last)))
        return Estimate(value, 0.0, windows=1)
