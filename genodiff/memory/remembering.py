"""A denoiser that remembers: its distribution is mixed with what a memory would copy.

    p'(a at i | xt) = w0_i · p(a at i | xt) + copy_ia

p is the denoiser's own distribution over A, C, G, T. What calls it knows nothing of the memory. A
denoiser that was trained with a memory (`recalls`) is told `recalled`, copy itself, as well.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genodiff.alphabet import DNA, code_letters
from genodiff.memory.memory import Intervals, Memory, Recalled
from genodiff.memory.text import Codes

Denoiser = Callable[..., Tensor]
_HALF = (torch.bfloat16, torch.float16)


@runtime_checkable
class RecallingDenoiser(Protocol):
    """A denoiser that says whether it takes `recalled` (B, L, 4), what a memory says."""

    recalls: bool


def reads_memory(denoiser: object) -> bool:
    """Whether a denoiser is told what a memory says; one that does not say so is not."""
    return isinstance(denoiser, RecallingDenoiser) and denoiser.recalls


def remembering(
    denoiser: Denoiser,
    memory: Memory,
    *,
    without: Intervals | None = None,
    targets: Sequence[int] = DNA.targets,
    mask_id: int = DNA.mask_id,
    pad_id: int = DNA.pad_id,
) -> Denoiser:
    """`denoiser` with `memory`: (xt (B, L), sigma) → logits (B, L, V).

    The logits change at masked places where the memory has something to say, and only in the
    columns of `targets` (ids of A, C, G, T), whose total chance stays. All others keep their bits,
    but for those of half precision, which become float32.
    `without`: for each row of a batch the interval of the memory's text to leave out
    (`Memory.exclude`). Padding on the right of a row is not read, so a row's logits do not depend
    on the others' lengths. Raises `ValueError` for another number of rows.
    """
    columns = torch.tensor(list(targets))
    code_of = code_letters(targets)
    reads = reads_memory(denoiser)

    def remember(xt: Tensor, *more: Tensor) -> Tensor:
        ids = xt.cpu().numpy()
        lengths = ((ids != pad_id) * np.arange(1, ids.shape[1] + 1)).max(1, initial=0)
        recalled = _recall_rows(memory, code_of[ids], lengths, without)
        background, copy = (torch.from_numpy(x).to(xt.device) for x in recalled)
        logits = denoiser(xt, *more, **({"recalled": copy} if reads else {}))
        logits = logits.float() if logits.dtype in _HALF else logits
        changes = (xt == mask_id) & (background < 1)
        at = columns.to(logits.device)
        mine = logits[..., at].double()
        total = mine.logsumexp(-1, keepdim=True)
        mixed = (background[..., None] * (mine - total).exp() + copy).log() + total
        new = logits.index_copy(-1, at, mixed.to(logits.dtype))
        return torch.where(changes[..., None], new, logits)

    return remember


def _recall_rows(
    memory: Memory, codes: Codes, lengths: NDArray[np.int64], without: Intervals | None
) -> Recalled:
    """What a memory says of rows, each of which ends where its length says."""
    if (lengths == codes.shape[1]).all():
        return memory.recall(codes, without)
    found = Recalled(np.ones(codes.shape), np.zeros((*codes.shape, 4)))
    for n in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == n)
        own = None if without is None else [without[i] for i in rows.tolist()]
        part = memory.recall(np.ascontiguousarray(codes[rows, :n]), own)
        found.background[rows, :n], found.copy[rows, :n] = part
    return found
