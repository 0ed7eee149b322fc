"""Evolutionary constraint from unaligned genomes: `genodiff.constraint`."""

from genodiff.conservation.request import ConstraintRequest
from genodiff.jobs.request import verb

constraint = verb("constraint", ConstraintRequest)
