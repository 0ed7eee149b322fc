"""A denoiser with relatives: its distribution p of a masked base b at position i becomes

    p'(b at i) ∝ p(b at i) · L_i(b)

with the factors L of `relatives.py`. So without relatives, or where none says anything, it is p,
bit for bit. The genomes are part of a model that uses them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from genodiff.alphabet import DNA, code_letters
from genodiff.memory.relatives import Loci, Relatives

Denoiser = Callable[..., Tensor]


def relating(
    denoiser: Denoiser,
    relatives: Relatives,
    *,
    without: Sequence[Loci] | None = None,
    targets: Sequence[int] = DNA.targets,
    mask_id: int = DNA.mask_id,
    pad_id: int = DNA.pad_id,
) -> Denoiser:
    """`denoiser` with `relatives`: (xt (B, L), sigma) → logits (B, L, V).

    The logits change at masked places of which relatives say something, and only in the columns of
    `targets` (ids of A, C, G, T), whose total chance stays. Padding on the right of a row is not
    read. `without`: for each row and genome the interval to leave out.
    """
    if not relatives.genomes:
        return denoiser
    columns = torch.tensor(list(targets))
    code_of = code_letters(targets)

    def relate(xt: Tensor, *more: Tensor, **options: Any) -> Tensor:
        logits = denoiser(xt, *more, **options)
        logits = logits if logits.dtype == torch.float64 else logits.float()
        ids, at = xt.cpu().numpy(), columns.to(logits.device)
        mine = logits[..., at].double()
        total = mine.logsumexp(-1, keepdim=True)
        prior = (mine - total).detach().exp().cpu().numpy()
        lengths = ((ids != pad_id) * np.arange(1, ids.shape[1] + 1)).max(1, initial=0)
        factors = np.ones(prior.shape)
        for n in np.unique(lengths).tolist():
            rows = np.flatnonzero(lengths == n)
            own = None if without is None else [without[i] for i in rows.tolist()]
            codes = np.ascontiguousarray(code_of[ids[rows, :n]])
            factors[rows, :n] = relatives.weigh(codes, prior[rows, :n], own)
        changes = (xt == mask_id) & torch.from_numpy((factors != 1).any(-1)).to(xt.device)
        joint = mine + torch.from_numpy(np.log(factors)).to(logits.device)
        joint = joint - joint.logsumexp(-1, keepdim=True) + total
        new = logits.index_copy(-1, at, joint.to(logits.dtype))
        return torch.where(changes[..., None], new, logits)

    return relate
