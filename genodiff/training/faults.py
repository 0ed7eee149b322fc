"""What torch and its libraries raise in training, as the user's error."""

import torch

from genodiff.errors import GenodiffError, MachineError

_LOST = (
    "Connection closed by peer", "Connection reset by peer", "Timed out waiting", "NCCL error",
    "connectFullMesh failed",
)  # fmt: skip
"""What gloo and NCCL say where a rank is gone."""


def name_fault(fault: BaseException) -> BaseException:
    """The user's error behind an exception of torch, or the exception itself."""
    text = str(fault)
    if isinstance(fault, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in text:
        return MachineError(
            "out of memory in training",
            fix="give a larger --accumulate, or a smaller --batch-size or --seq-len",
        )
    if any(word in text for word in _LOST):
        return GenodiffError(
            f"the connection to another rank broke ({text.splitlines()[0][:120]})",
            fix="run the same command again; the last checkpoint stands",
        )
    if "does not have a deterministic implementation" in text:
        return MachineError(
            f"--deterministic: torch's {text.split()[0]} has nothing on this device that gives "
            f"the same bits every time",
            fix="leave --deterministic out, or train on a CPU",
        )
    if "DataLoader worker" in text or "DataLoader timed out" in text:
        return GenodiffError(
            text.splitlines()[0], fix="run the same command again; the last checkpoint stands"
        )
    return fault
