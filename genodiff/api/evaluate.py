"""How well a run knows its data: `genodiff.evaluate`."""

from genodiff.evaluation.request import EvalRequest
from genodiff.jobs.request import verb

evaluate = verb("evaluate", EvalRequest)
