"""New sequences and fillings in a file: `genodiff.sample`."""

from genodiff.generate.request import SampleRequest
from genodiff.jobs.request import verb

sample = verb("sample", SampleRequest)
