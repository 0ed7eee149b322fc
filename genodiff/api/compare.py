"""Runs side by side: `genodiff.compare`."""

from genodiff.jobs.request import verb
from genodiff.studies.compare_request import CompareRequest

compare = verb("compare", CompareRequest)
