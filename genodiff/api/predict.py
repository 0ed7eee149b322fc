"""A fine-tuned model on new sequences: `genodiff.predict`."""

from genodiff.finetuning.predict_request import PredictRequest
from genodiff.jobs.request import verb

predict = verb("predict", PredictRequest)
