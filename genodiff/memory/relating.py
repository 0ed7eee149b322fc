"""A denoiser with relatives: its distribution p of a masked base b at position i becomes

    p'(b at i) ∝ p(b at i) · L_i(b)

with the factors L of `relatives.py`. So without relatives, or where none says anything, it is p,
bit for bit. The genomes are part of a model that uses them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from genodiff.alphabet import DNA, code_letters
from genodiff.memory.relatives import Relatives

Denoiser = Callable[..., Tensor]


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
        lengths = ((ids != DNA.pad_id) * np.arange(1, ids.shape[1] + 1)).max(1, initial=0)
        factors = np.ones(prior.shape)
        for n in np.unique(lengths).tolist():
            rows = np.flatnonzero(lengths == n)
            codes = np.ascontiguousarray(code_of[ids[rows, :n]])
            factors[rows, :n] = relatives.weigh(codes, prior[rows, :n])
        changes = (xt == DNA.mask_id) & torch.from_numpy((factors != 1).any(-1)).to(xt.device)
        joint = mine + torch.from_numpy(np.log(factors)).to(logits.device)
        joint = joint - joint.logsumexp(-1, keepdim=True) + total
        new = logits.index_copy(-1, at, joint.to(logits.dtype))
        return torch.where(changes[..., None], new, logits)

    return relate
