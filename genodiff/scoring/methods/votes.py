"""`votes`: how many lines of descent have each base, as relatives tell it (`memory/votes.py`)."""

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from genodiff.scoring.methods import SCORE_METHODS, ScoreMethod
from genodiff.scoring.span_scores import Estimate, Steps
from genodiff.scoring.spelling_pair import SpellingPair

if TYPE_CHECKING:
    from genodiff.memory.evidence import Floats
    from genodiff.memory.text import Codes
    from genodiff.runs.related_model import RelatedBackbone
    from genodiff.runs.training_memory import Place
    from genodiff.scoring.masked_reader import MaskedReader
    from genodiff.scoring.score_options import ScoreOptions

_UNKNOWN = 4  # the code of a base that is not visible


class OfRelatives(ScoreMethod):
    """A method that counts relatives at one base: the network is not asked."""

    needs_relatives = True

    def windows(self, ref: int, alt: int) -> int:
        """One, in which relatives are searched, for one base."""
        return int((ref, alt) == (1, 1))

    def start(
        self,
        reader: "MaskedReader",
        pair: SpellingPair,
        options: "ScoreOptions",
        place: "Place | None",
    ) -> Steps:
        """At the one base; a value of NaN for other pairs."""
        if pair.widths != (1, 1):
            return Estimate(np.nan, 0.0, note="votes_are_of_one_base")
        at, related = int(pair.ref_span.argmax()), cast(Any, reader.denoiser)
        codes = reader.columns(pair.ref)
        hidden: Codes = np.where((codes < 0) | pair.ref_span, _UNKNOWN, codes).astype(np.uint8)
        ref, alt = (int(reader.columns(one)[at]) for one in (pair.ref, pair.alt))
        over, change = related.relatives.align(hidden[None]), np.nan
        if self.needs_change:
            change = float(related.measure_change(over, hidden[None])[0, at])
        counted = self.count(related, over[:, 0, at], ref, change)
        return Estimate(float(counted[alt]), 0.0, windows=1)
        yield []  # no window of the network is asked for


@SCORE_METHODS.register("votes")
class Votes(OfRelatives):
    """What a variant does, where the likelihood says how common it is."""

    help = "of relatives, how many have each base (one base for another alone)"

    def count(
        self, network: "RelatedBackbone", over: "Floats", ref: int, change: float
    ) -> "Floats":
        """By lines of descent."""
        return network.score_votes(over, ref)
