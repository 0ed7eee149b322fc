"""The windows that an evaluation scores."""

import time
from typing import Any, NamedTuple

import torch

from genodiff.data.recipe import Recipe
from genodiff.data.store import Store
from genodiff.data.text_recipe import TextRecipe
from genodiff.data.tokenizer import Tokenizer
from genodiff.data.windows import Windows
from genodiff.io.identity import time_stamp
from genodiff.runs import feed
from genodiff.runs.model import TrainedModel
from genodiff.scoring.eval_options import EvalOptions


class EvalData(NamedTuple):
    """What is scored."""

    recipe: Recipe | TextRecipe
    store: Store
    windows: Windows
    total: int  # windows of the split
    tokenizer: Tokenizer | None


def open_data(model: TrainedModel, options: EvalOptions = EvalOptions()) -> EvalData:
    """The windows of a split of the model's own data, or of those that the options name instead.

    Raises `DataError`, `UsageError`, `CheckpointError`.
    """
    config = model.config.model_copy(update=options.inputs())
    data = feed.open_data(config, model.run, alphabet=model.alphabet, offline=options.offline)
    windows = data.cut(options.split)
    return EvalData(data.recipe, data.store, windows, len(windows), data.tokenizer)


def request_keys(model: TrainedModel, options: EvalOptions) -> dict[str, Any]:
    """The keys of an evaluation that say what was asked of which model."""
    return {
        "split": options.split,
        "seed": options.seed,
        "repeats": options.repeats,
        "checkpoint": model.digest,
        "step": model.step,
        "objective": model.config.diffusion.objective,
        "figure": model.objective.figure,
    }


def work_keys(device: torch.device, began: float) -> dict[str, Any]:
    """The keys of an evaluation that say where and when it was made; `began` is monotonic time."""
    return {
        "seconds": round(time.monotonic() - began, 3),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "created": time_stamp(),
    }
