"""`headcount`: each relative counts once, and how much changes around (`memory/votes.py`)."""

from typing import TYPE_CHECKING

from genodiff.scoring.methods import SCORE_METHODS
from genodiff.scoring.methods.votes import OfRelatives

if TYPE_CHECKING:
    from genodiff.memory.evidence import Floats
    from genodiff.runs.related_model import RelatedBackbone


@SCORE_METHODS.register("headcount")
class Headcount(OfRelatives):
    """Votes without weights, and without a guess of which bases are exchanged."""

    help = "as votes, each relative counting once, and more where the places around change quickly"
    needs_change = True

    def count(
        self, network: "RelatedBackbone", over: "Floats", ref: int, change: float
    ) -> "Floats":
        """By heads."""
        return network.score_heads(over, ref, change)
