"""Labels at each base of a genome, learned: `genodiff.finetune_bases`."""

from genodiff.finetuning.base_request import BasesRequest
from genodiff.jobs.request import verb

finetune_bases = verb("finetune_bases", BasesRequest)
