"""The selective scan, one step at a time: the definition that faster versions are tested against.

    dt_t = softplus(delta_t + delta_bias)            h_t = exp(dt_t A) ⊙ h_{t-1} + dt_t u_t B_tᵀ
    y_t  = h_t C_t + D ⊙ u_t                         y_t ← y_t ⊙ silu(z_t)

Batch B, length L, channels E, states N. Any float dtype; autograd gives the gradients. Source: Gu
and Dao, 2023, arXiv 2312.00752.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def naive_scan(
    u: Float[Tensor, "B L E"],
    delta: Float[Tensor, "B L E"],
    A: Float[Tensor, "E N"],
    B: Float[Tensor, "B L N"],
    C: Float[Tensor, "B L N"],
    D: Float[Tensor, " E"] | None = None,
    z: Float[Tensor, "B L E"] | None = None,
    delta_bias: Float[Tensor, " E"] | None = None,
    delta_softplus: bool = False,
    reverse: bool = False,
    h0: Float[Tensor, "B E N"] | None = None,
) -> tuple[Float[Tensor, "B L E"], Float[Tensor, "B E N"]]:
    """Outputs y and the state after the last step; with `reverse` time runs from L−1 down to 0."""
    dt = delta if delta_bias is None else delta + delta_bias
    if delta_softplus:
        dt = F.softplus(dt)
    # unbind, for the gradient of one slice would be as large as the whole tensor.
    steps = list(zip(u.unbind(1), dt.unbind(1), B.unbind(1), C.unbind(1), strict=True))
    h = u.new_zeros(u.shape[0], *A.shape) if h0 is None else h0
    ys = []
    for u_t, dt_t, B_t, C_t in reversed(steps) if reverse else steps:
        h = torch.exp(dt_t[:, :, None] * A) * h + (dt_t * u_t)[:, :, None] * B_t[:, None, :]
        ys.append((h * C_t[:, None, :]).sum(-1))
    y = torch.stack(ys[::-1] if reverse else ys, 1)
    if D is not None:
        y = y + D * u
    return (y if z is None else y * F.silu(z)), h
