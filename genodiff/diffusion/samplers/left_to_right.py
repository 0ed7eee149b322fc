"""Tokens from left to right, each from those before it; or from both ends inwards.

A causal network that keeps what it has read (keys and values, or the state of a recurrence) reads
every token once; see `Decoder`. Without a decoder the network is run again over the whole window
for every token: the definition, and slow. A masked network is always run again, and knows what
stands to the right of a gap.

Both ends first is the outermost mask of the left, then that of the right, and so inwards. With
`at_once=2` a base and its mirror image are drawn together. A network of both strands then has
p(x) = p(rc x), as under `strand_symmetric`.
"""

import torch
from jaxtyping import Int
from torch import Tensor

from genodiff.diffusion.draw import Draw
from genodiff.diffusion.in_order import count_groups, fill_in_order, read_at_once
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.objectives.ar import shifted
from genodiff.diffusion.sampler import Filling, Sampled, SamplerOptions, sampler
from genodiff.errors import UsageError


@sampler(
    "left-to-right",
    fits=("masked", "score", "causal"),
    evaluations=count_groups,
    uses_steps=False,
    steers=True,
    order="fixed",
)
def left_to_right(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    xt: Int[Tensor, "B L"],
    options: SamplerOptions,
    at_once: float = 1.0,
) -> Sampled:
    """`at_once` positions per evaluation; `u_order` and `steps` play no part."""
    n = read_at_once(at_once)
    if not options.causal:
        filling = Filling(diffusion, denoiser, xt, options)
        order = (~filling.masked).int().argsort(dim=-1, stable=True)
        return fill_in_order(filling, order, at_once=n)
    if n > 1:
        what = "a causal network draws one token after the other"
        raise UsageError(what, fix="leave at_once out")
    return _go_on(diffusion, denoiser, xt, options)


def _go_on(
    diffusion: MaskedDiffusion, denoiser: Denoiser, xt: Int[Tensor, "B L"], options: SamplerOptions
) -> Sampled:
    """One evaluation of one position per mask, of a causal network.

    A visible token is read and stays. What stands to the right of a mask is not known when it is
    filled: the law is that of a text which goes on, not of one with a gap. `refine` works on whole
    windows.
    """
    draw = Draw(options.temperature, options.top_p)
    refine, decoder = options.refine, options.decoder
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


@sampler(
    "both-ends",
    fits=("masked", "score"),
    evaluations=count_groups,
    uses_steps=False,
    steers=True,
    order="fixed",
)
def both_ends(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    xt: Int[Tensor, "B L"],
    options: SamplerOptions,
    at_once: float = 1.0,
) -> Sampled:
    """`at_once` positions per evaluation; `u_order` and `steps` play no part."""
    filling = Filling(diffusion, denoiser, xt, options)
    masked = filling.masked
    rank = masked.cumsum(-1) - 1
    from_right = masked.sum(-1, keepdim=True) - 1 - rank
    inwards = torch.where(rank <= from_right, 2 * rank, 2 * from_right + 1)
    order = inwards.masked_fill(~masked, 2 * xt.shape[1]).argsort(dim=-1, stable=True)
    return fill_in_order(filling, order, at_once=read_at_once(at_once))
