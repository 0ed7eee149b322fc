"""Generated DNA beside real DNA: `genodiff.scorecard`, and `genodiff.compare_designs`."""

from genodiff.jobs.request import verb
from genodiff.quality.requests import DesignsRequest, EitherRequest, ScorecardRequest

scorecard = verb("scorecard", ScorecardRequest)
compare_designs = verb("compare_designs", DesignsRequest)
scorecard_or_designs = verb("scorecard_or_designs", EitherRequest)
