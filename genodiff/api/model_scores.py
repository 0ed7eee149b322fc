"""Scores in memory: of variants, `m.score`, and the exact likelihood of sequences."""

from genodiff.evaluation.likelihood_request import LikelihoodRequest
from genodiff.jobs.request import method
from genodiff.variants.request import HeldScoreRequest


class ModelScores:
    """What `genodiff score` writes, as a frame; and how likely sequences are."""

    score_variants = method("score_variants", HeldScoreRequest)
    score = method("score", HeldScoreRequest)
    log_likelihood = method("log_likelihood", LikelihoodRequest)
