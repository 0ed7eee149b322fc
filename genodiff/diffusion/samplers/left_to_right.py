"""The autoregressive sampler: tokens from left to right, each from those before it.

A network that keeps what it has read (keys and values, or the state of a recurrence) reads every
token once; see `Decoder`. Without a decoder the network is run again over the whole window for
every token: the definition, and slow.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from genodiff.diffusion.draw import Draw
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.objectives.ar import shifted
from genodiff.diffusion.sampler import Sampled, SamplerOptions, one_per_mask, sampler


@sampler("left-to-right", fits=("causal",), evaluations=one_per_mask, uses_steps=False)
@torch.no_grad()
def left_to_right(
    diffusion: MaskedDiffusion, denoiser: Denoiser, xt: Int[Tensor, "B L"], options: SamplerOptions
) -> Sampled:
    """One evaluation of one position per mask; `u_order` and `steps` play no part.

    A visible token is read and stays. What stands to the right of a mask is not known when it is
    filled: the law is that of a text which goes on, not of one with a gap. `refine` works on whole
    windows.
    """
    draw, refine, decoder = (
        Draw(options.temperature, options.top_p),
        options.refine,
        options.decoder,
    )
    tolerance = 0.0 if refine is None else options.tolerance
    x, masked, u = xt.clone(), xt == diffusion.mask_id, options.u_token
    targets = torch.tensor(diffusion.targets, device=xt.device, dtype=xt.dtype)
    places = masked.any(0).nonzero()[:, 0].tolist()  # masked in any sequence
    cache, read = None if decoder is None else decoder.cache(xt.shape[1]), 0
    for i in places:
        inputs = shifted(x, diffusion.mask_id)
        sigma = torch.zeros(len(x), dtype=u.dtype, device=x.device)
        if decoder is None:
            logits = denoiser(inputs, sigma)[:, i]
        else:
            # All that the cache has not read yet: more than one token after a visible stretch.
            logits = decoder.decode(inputs[:, read : i + 1], cache)[:, -1]
            read = i + 1
        rows = masked[:, i].nonzero()[:, 0]
        column, close = draw(diffusion.target_logits(logits[rows]), u[rows, i], tolerance)
        if refine is not None:
            for j in close.nonzero()[:, 0].tolist():
                row = rows[j : j + 1]
                exact = refine(inputs[row, : i + 1], sigma[row])[:, i]
                column[j : j + 1], _ = draw(diffusion.target_logits(exact), u[row, i], 0.0)
        x[rows, i] = targets[column]
    return Sampled(x, masked.sum(-1))
