"""The autoregressive sampler: tokens from left to right, each from those before it.

A network that keeps what it has read (keys and values, or the state of a recurrence) reads every
token once:

    cache = decoder.cache(capacity);   logits = decoder.decode(x (B, n), cache)
    of the n positions that follow

Without a decoder the network is run again over the whole window for every token: the definition,
and slow.
"""

from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.diffusion.draw import Draw
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.objectives.ar import shifted
from genodiff.diffusion.sampler import Sampled, one_per_mask, sampler


@runtime_checkable
class Decoder(Protocol):
    """A causal network that goes on from what it has read."""

    def cache(self, capacity: int) -> Any:
        """An empty cache of `capacity` positions."""

    def decode(self, x: Tensor, cache: Any) -> Tensor:
        """Logits (B, n, V) of what follows each of x's n positions; the cache then holds them too."""


@sampler("left-to-right", fits=("causal",), evaluations=one_per_mask, uses_steps=False)
@torch.no_grad()
def left_to_right(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    xt: Int[Tensor, "B L"],
    *,
    u_order: Float[Tensor, "B L"],
    u_token: Float[Tensor, "B L"],
    steps: int = 0,
    temperature: float = 1.0,
    top_p: float = 1.0,
    refine: Denoiser | None = None,
    tolerance: float = 1e-4,
    decoder: Decoder | None = None,
) -> Sampled:
    """One evaluation of one position per mask; `u_order` and `steps` play no part.

    A visible token is read and stays. What stands to the right of a mask is not known when it is
    filled: the law is that of a text which goes on, not of one with a gap. `refine` is the network
    in double precision, on whole windows.
    """
    draw, slack = Draw(temperature, top_p), 0.0 if refine is None else tolerance
    x, masked = xt.clone(), xt == diffusion.mask_id
    targets = torch.tensor(diffusion.targets, device=xt.device, dtype=xt.dtype)
    places = masked.any(0).nonzero()[:, 0].tolist()
    cache, read = None if decoder is None else decoder.cache(xt.shape[1]), 0
    for i in places:
        inputs = shifted(x, diffusion.mask_id)
        sigma = torch.zeros(len(x), dtype=u_token.dtype, device=x.device)
        if decoder is None:
            logits = denoiser(inputs, sigma)[:, i]
        else:
            logits = decoder.decode(inputs[:, read : i + 1], cache)[:, -1]
            read = i + 1
        rows = masked[:, i].nonzero()[:, 0]
        column, close = draw(diffusion.target_logits(logits[rows]), u_token[rows, i], slack)
        for j in close.nonzero()[:, 0].tolist() if refine is not None else ():
            row = rows[j : j + 1]
            assert refine is not None
            exact = refine(inputs[row, : i + 1], sigma[row])[:, i]
            column[j : j + 1], _ = draw(diffusion.target_logits(exact), u_token[row, i], 0.0)
        x[rows, i] = targets[column]
    return Sampled(x, masked.sum(-1))
