"""What a model of yours thinks of samples: `genodiff.judge`."""

from genodiff.jobs.request import verb
from genodiff.quality.requests import JudgeRequest

judge = verb("judge", JudgeRequest)
