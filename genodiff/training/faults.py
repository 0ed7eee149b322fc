"""Faults of training: what torch raises, as the user's error, and the batches that were not finite.

Such batches are kept in the run folder for a closer look.
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from genodiff.data.loader import Batch
from genodiff.errors import GenodiffError, MachineError
from genodiff.io import atomic
from genodiff.runs.sealed_files import encode_tensors

FOLDER = "faulty_batches"

_LOST = (
    "Connection closed by peer", "Connection reset by peer", "Timed out waiting", "NCCL error",
    "connectFullMesh failed",
)  # fmt: skip
"""What gloo and NCCL say where a rank is gone."""
_AGAIN = "run the same command again; the last checkpoint is valid"


def name_fault(fault: BaseException) -> BaseException:
    """The user's error behind an exception of torch, or the exception itself."""
    text = str(fault)
    if isinstance(fault, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in text:
        fix = "give a larger --accumulate, or a smaller --batch-size or --seq-len"
        return MachineError("out of memory in training", fix=fix)
    if any(word in text for word in _LOST):
        what = f"the connection to another rank broke ({text.splitlines()[0][:120]})"
        return GenodiffError(what, fix=_AGAIN)
    if "does not have a deterministic implementation" in text:
        what = f"--deterministic: torch's {text.split()[0]} has nothing on this device that gives "
        fix = "leave --deterministic out, or train on a CPU"
        return MachineError(f"{what}the same bits every time", fix=fix)
    if "DataLoader worker" in text or "DataLoader timed out" in text:
        return GenodiffError(text.splitlines()[0], fix=_AGAIN)
    return fault


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
