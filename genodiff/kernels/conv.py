"""The short causal convolution of a Mamba mixer, channels last: y_t = act(b + Σ_k w_k x_{t−K+1+k}).

With `reverse` it looks ahead instead of back, which equals flipping time before and after: y_t = act(b + Σ_k w_k x_{t+K−1−k}).
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def causal_conv1d(
    x: Float[Tensor, "B L E"],
    weight: Float[Tensor, "E K"],
    bias: Float[Tensor, " E"] | None = None,
    reverse: bool = False,
    activation: str | None = "silu",
) -> Float[Tensor, "B L E"]:
    """Outputs (B, L, E); positions outside the sequence count as zero. `activation` is "silu" or None."""
    if activation not in ("silu", None):
        raise ValueError(f"activation is 'silu' or None, not {activation!r}")
    width, length = weight.shape[1], x.shape[1]
    padded = F.pad(x, (0, 0, 0, width - 1) if reverse else (0, 0, width - 1, 0))
    taps = weight.flip(1) if reverse else weight
    y = padded[:, :length] * taps[:, 0]
    for k in range(1, width):
        y = torch.addcmul(y, padded[:, k : k + length], taps[:, k])
    if bias is not None:
        y = y + bias
    return y if activation is None else F.silu(y)
