"""Whether a denoiser gives one distribution a position, as every bound here takes for granted.

    sum over masked i of -log p_i(x_i | xt)

bounds -log p(x), or is it, where p_i is a function of xt alone. Where the positions' predictions
depend on one another (on tokens drawn within the network, say, or on a number that it shares among
them), each -log p_i is of another law than the next, the sum may fall below -log p(x), and training
on it can make it as small as one likes. That cannot be told from one answer; so it is asked again.

Source: the withdrawal of MDM-Prime, https://chen-hao-chao.github.io/dependency-breaks-validity
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.errors import UsageError

_SLACK = 0.05
"""Nats by which answers may differ: rounding in half precision is within it."""


@torch.no_grad()
def check_apart(
    diffusion: MaskedDiffusion,
    denoiser: Denoiser,
    xt: Int[Tensor, "B L"],
    sigma: Float[Tensor, " B"],
    *told: Tensor,
) -> None:
    """Raises `UsageError` for a denoiser whose positions' predictions are no function of xt alone.

    `told` are its further arguments, such as lengths. It is asked twice.
    """
    first, second = (denoiser(xt, sigma, *told) for _ in range(2))
    if first.ndim != 3 or first.shape[:2] != xt.shape:
        _refuse(f"its answer has the shape {tuple(first.shape)}")
    masked = xt == diffusion.mask_id
    laws = [
        diffusion.target_logits(one)[masked].double().log_softmax(-1) for one in (first, second)
    ]
    # What is not finite is the bound's to refuse.
    if masked.any() and (laws[0].exp() * (laws[0] - laws[1]).abs()).amax() > _SLACK:
        _refuse("asked twice about the same bases, it gives two answers")


def _refuse(why: str) -> None:
    raise UsageError(
        "a network whose positions' predictions depend on one another has no bound of this kind: "
        + why,
        fix="let it give one distribution a position, and draw nothing within the network",
    )
