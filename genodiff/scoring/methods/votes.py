"""`votes`: how many lines of descent have each base, as relatives tell it (`memory/tree.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from genodiff.scoring.methods import SCORE_METHODS, ScoreMethod
from genodiff.scoring.span_scores import Estimate, Steps
from genodiff.scoring.spelling_pair import SpellingPair

if TYPE_CHECKING:
    from genodiff.memory.tables import Floats
    from genodiff.memory.text import Codes
    from genodiff.runs.related_reader import RelatedReader
    from genodiff.runs.training_memory import Place
    from genodiff.scoring.masked_reader import MaskedReader
    from genodiff.scoring.methods import ScoreOptions

UNKNOWN = 4
"""The code of a base that is not visible."""


class OfRelatives(ScoreMethod):
    """A method that counts relatives at one base: the network is not asked."""

    needs_relatives = True

    def windows(self, ref: int, alt: int) -> int:
        """One, in which relatives are searched, for one base."""
        return int((ref, alt) == (1, 1))

    def start(
        self, reader: MaskedReader, pair: SpellingPair, options: ScoreOptions, place: Place | None
    ) -> Steps:
        """At the one base; a value of NaN for other pairs."""
        if pair.widths != (1, 1):
            return Estimate(np.nan, 0.0, note="votes_are_of_one_base")
        at, related = int(pair.ref_span.argmax()), cast(Any, reader.related)
        codes = reader.columns(pair.ref)
        hidden: Codes = np.where((codes < 0) | pair.ref_span, UNKNOWN, codes).astype(np.uint8)
        ref, alt = (int(reader.columns(one)[at]) for one in (pair.ref, pair.alt))
        over = related.relatives.align(hidden[None])
        around = self.read_around(related, over, hidden[None])
        own = None if around is None else around[0, at]
        counted = self.count(related, over[:, 0, at], ref, own)
        return Estimate(float(counted[alt]), 0.0, windows=1)
        yield []  # no window of the network is asked for


@SCORE_METHODS.register("votes")
class Votes(OfRelatives):
    """What a variant does, where the likelihood says how common it is."""

    help = "phylogenetically weighted allele counts in related genomes (SNVs only)"

    def count(
        self, network: RelatedReader, over: Floats, ref: int, around: Floats | None
    ) -> Floats:
        """By lines of descent."""
        return network.score_votes(over, ref)
