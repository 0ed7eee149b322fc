"""Scores of variants in memory: `m.score`, by its longer name `m.score_variants`."""

from genodiff.jobs.request import method
from genodiff.variants.request import HeldScoreRequest


class ModelScores:
    """What `genodiff score` writes, as a frame."""

    score_variants = method("score_variants", HeldScoreRequest)
    score = method("score", HeldScoreRequest)
