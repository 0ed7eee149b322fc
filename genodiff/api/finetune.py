"""Fine-tuning on tasks of a suite, or on one's own labelled sequences: `genodiff.finetune`."""

from genodiff.jobs.request import verb
from genodiff.studies.sweep_request import SweepRequest

finetune = verb("finetune", SweepRequest)
