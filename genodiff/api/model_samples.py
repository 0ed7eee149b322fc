"""What a model draws in memory: `m.sample`, `m.infill` and `m.redesign`."""

from genodiff.design.request import HeldDesignsRequest
from genodiff.generate.request import HeldSampleRequest, InfillRequest
from genodiff.jobs.request import method


class ModelSamples:
    """What `genodiff sample` and `genodiff redesign` write, as strings."""

    sample = method("sample", HeldSampleRequest)
    infill = method("infill", InfillRequest)
    redesign = method("redesign", HeldDesignsRequest)
