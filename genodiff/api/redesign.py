"""Designs of regions in files: `genodiff.redesign`."""

from genodiff.design.request import RedesignRequest
from genodiff.jobs.request import verb

redesign = verb("redesign", RedesignRequest)
