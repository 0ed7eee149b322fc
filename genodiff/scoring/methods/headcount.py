"""`headcount`: each relative counts once, and how much changes around (`memory/tree.py`)."""

from typing import TYPE_CHECKING

from genodiff.scoring.methods import SCORE_METHODS
from genodiff.scoring.methods.votes import OfRelatives

if TYPE_CHECKING:
    from genodiff.memory.tables import Floats
    from genodiff.memory.text import Codes
    from genodiff.runs.related_reader import RelatedReader


@SCORE_METHODS.register("headcount")
class Headcount(OfRelatives):
    """Votes without weights, and without a guess of which bases are exchanged."""

    help = (
        "unweighted count of related genomes with each allele, scaled up in fast-evolving regions"
    )

    def read_around(self, network: "RelatedReader", over: "Floats", windows: "Codes") -> "Floats":
        """How quickly the positions around change, the same for each base."""
        return network.measure_change(over, windows)[..., None].repeat(4, -1)

    def count(
        self, network: "RelatedReader", over: "Floats", ref: int, around: "Floats | None"
    ) -> "Floats":
        """By heads."""
        assert around is not None
        return network.score_heads(over, ref, float(around[0]))
