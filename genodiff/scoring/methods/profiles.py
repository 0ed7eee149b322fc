"""`profiles`: which bases a position tolerates (`memory/profiles.py`)."""

from typing import TYPE_CHECKING

from genodiff.scoring.methods import SCORE_METHODS
from genodiff.scoring.methods.votes import OfRelatives

if TYPE_CHECKING:
    from genodiff.memory.evidence import Floats
    from genodiff.runs.related_model import RelatedBackbone


@SCORE_METHODS.register("profiles")
class Profiles(OfRelatives):
    """A likelihood ratio that knows the spectrum of mutations, the rate and the tolerated bases."""

    help = "of relatives, how well a mutation-selection model of the position tolerates each base"
    needs_change = True

    def count(
        self, network: "RelatedBackbone", over: "Floats", ref: int, change: float
    ) -> "Floats":
        """By classes of base profiles, summed on the tree."""
        return network.score_profiles(over, ref, change)
