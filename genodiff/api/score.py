"""Scores of variants in a file: `genodiff.score`."""

from genodiff.jobs.request import verb
from genodiff.variants.request import ScoreRequest

score = verb("score", ScoreRequest)
