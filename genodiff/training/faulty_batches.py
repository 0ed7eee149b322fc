"""The batches of a step that was not finite, kept in the run folder for a closer look."""

from collections.abc import Sequence
from pathlib import Path

import torch

from genodiff.data.loader import Batch
from genodiff.errors import MachineError
from genodiff.io import atomic
from genodiff.runs.sealed_files import encode_tensors

FOLDER = "faulty_batches"


def keep_batches(run: Path, rank: int, step: int, batches: Sequence[Batch]) -> str:
    """Write RUN/faulty_batches/step_STEP_rank_RANK.safetensors; one clause that says so.

    Its tensors are the fields of `Batch` with the micro-batch's number before them. A disk that is
    full is told in the clause.
    """
    tensors = {
        f"{number}.{name}": value if isinstance(value, torch.Tensor) else torch.tensor(value)
        for number, batch in enumerate(batches)
        for name, value in batch._asdict().items()
        if value is not None
    }
    path = run / FOLDER / f"step_{step:08d}_rank_{rank}.safetensors"
    try:
        path.parent.mkdir(exist_ok=True)
        atomic.write_bytes(path, encode_tensors(tensors))
    except (MachineError, OSError) as fault:
        return f"its batch could not be kept ({fault})"
    return f"its batch is in {path.parent.name}/{path.name}"
