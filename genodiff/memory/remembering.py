"""A denoiser that remembers the training genome, or reads relatives.

With a memory its distribution p of a masked base is mixed with what the memory would copy; with
relatives it is multiplied by their factors L (`relatives.py`):

    p'(a at i | xt) = w0_i · p(a at i | xt) + copy_ia          p'(b at i) ∝ p(b at i) · L_i(b)

So where nothing is said it is p, bit for bit. What calls it knows nothing of either. A denoiser
that was trained with a memory (`recalls`) is told `recalled`, copy itself, as well.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genodiff.alphabet import DNA, code_letters
from genodiff.memory.memory import Intervals, Memory, Recalled
from genodiff.memory.relatives import Relatives
from genodiff.memory.text import Codes

Denoiser = Callable[..., Tensor]
_HALF = (torch.bfloat16, torch.float16)


def reads_memory(denoiser: object) -> bool:
    """Whether a denoiser is told what a memory says; one that does not say so is not."""
    return bool(getattr(denoiser, "recalls", False))


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
        recalled = Recalled(np.ones(ids.shape), np.zeros((*ids.shape, 4)))
        for rows, codes in _list_rows(code_of[ids], ids != pad_id):
            own = None if without is None else [without[i] for i in rows.tolist()]
            n = codes.shape[1]
            recalled.background[rows, :n], recalled.copy[rows, :n] = memory.recall(codes, own)
        background, copy = (torch.from_numpy(x).to(xt.device) for x in recalled)
        logits = denoiser(xt, *more, **({"recalled": copy} if reads else {}))
        logits = logits.float() if logits.dtype in _HALF else logits
        changes = (xt == mask_id) & (background < 1)
        at = columns.to(logits.device)
        mine = logits[..., at].double()
        total = mine.logsumexp(-1, keepdim=True)
        mixed = (background[..., None] * (mine - total).exp() + copy).log() + total
        return _put(logits, at, mixed, changes)

    return remember


def relating(denoiser: Denoiser, relatives: Relatives) -> Denoiser:
    """`denoiser` with `relatives`: (xt (B, L), sigma) → logits (B, L, V).

    The logits change at masked places of which relatives say something, and only in the columns of
    A, C, G and T, whose total chance stays. Padding on the right of a row is not read.
    """
    if not relatives.genomes:
        return denoiser
    columns = torch.tensor(list(DNA.targets))
    code_of = code_letters(DNA.targets)

    def relate(xt: Tensor, *more: Tensor, **options: Any) -> Tensor:
        logits = denoiser(xt, *more, **options)
        logits = logits if logits.dtype == torch.float64 else logits.float()
        ids, at = xt.cpu().numpy(), columns.to(logits.device)
        mine = logits[..., at].double()
        total = mine.logsumexp(-1, keepdim=True)
        prior = (mine - total).detach().exp().cpu().numpy()
        factors = np.ones(prior.shape)
        for rows, codes in _list_rows(code_of[ids], ids != DNA.pad_id):
            n = codes.shape[1]
            factors[rows, :n] = relatives.weigh(codes, prior[rows, :n])
        changes = (xt == DNA.mask_id) & torch.from_numpy((factors != 1).any(-1)).to(xt.device)
        joint = mine + torch.from_numpy(np.log(factors)).to(logits.device)
        joint = joint - joint.logsumexp(-1, keepdim=True) + total
        return _put(logits, at, joint, changes)

    return relate


def _list_rows(codes: Codes, seen: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.int64], Codes]]:
    """Rows (B, L) that end at the same place, the last that is `seen`, and their codes up to it."""
    lengths = (seen * np.arange(1, codes.shape[1] + 1)).max(1, initial=0)
    for n in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == n)
        yield rows, np.ascontiguousarray(codes[rows, :n])


def _put(logits: Tensor, at: Tensor, new: Tensor, changes: Tensor) -> Tensor:
    """`logits` with `new` in the columns `at`, where a place `changes`."""
    changed = logits.index_copy(-1, at, new.to(logits.dtype))
    return torch.where(changes[..., None], changed, logits)
