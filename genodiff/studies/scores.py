"""Figures of a model on each window, and the files that keep them, for paired differences."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.data.loader import EvalBatches
from genodiff.data.windows import Windows
from genodiff.evaluation.bound import Progress, measure_bound
from genodiff.io import atomic
from genodiff.runs.model import TrainedModel

_MOST_ROWS, _MOST_TOKENS = 32, 32768  # in a batch

Floats = NDArray[np.float64]


class TrialScore(NamedTuple):
    """A run's figure on each window.

    `size` is what bits are counted per: bases of DNA, bytes of text.
    """

    nats: Floats
    tokens: Floats
    size: Floats


def score_windows(
    model: TrainedModel, windows: Windows, seed: int, repeats: int, progress: Progress | None = None
) -> tuple[Floats, Floats]:
    """Nats (mean over repeats) and tokens of each window. Raises as `measure_bound`."""
    device = next(model.backbone.parameters()).device
    rows = max(1, min(_MOST_ROWS, _MOST_TOKENS // windows.seq_len))
    batches = EvalBatches(windows, rows, seed, repeats)
    found = measure_bound(model.objective, model.backbone, batches, device, progress)
    return found.nats.sum(0).mean(0), found.tokens.sum(0)


def read_score(file: Path, asked: dict[str, Any]) -> TrialScore | None:
    """What `write_score` kept, if the same was asked; else None."""
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        if kept["asked"] == asked:
            return TrialScore(*(np.array(kept[name]) for name in TrialScore._fields))
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def write_score(file: Path, asked: dict[str, Any], score: TrialScore) -> None:
    """Keep a score under what was asked. Raises `MachineError`."""
    arrays = {name: getattr(score, name).tolist() for name in TrialScore._fields}
    atomic.write_json(file, {"asked": asked} | arrays)
