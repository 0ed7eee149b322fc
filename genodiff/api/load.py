"""A model from disk: `genodiff.load`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from genodiff.api.machine import choose_device

if TYPE_CHECKING:
    from genodiff.api.model import Model


def load(path: str | Path, *, device: str = "auto") -> Model:
    """The model in a run folder or a checkpoint folder, ready to use.

    The weights are the averaged ones; of a run folder, the newest. `device` is auto, cpu or cuda.
    Raises `CheckpointError`, naming the file and the fault; `MachineError` for a device that is
    not there.
    """
    device = choose_device(device)
    from genodiff.api.model import Model
    from genodiff.runs.model import load_model

    return Model(load_model(path, device=device))
