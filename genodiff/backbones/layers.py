"""Small layers: norms, also with mirrored channels, and initial values of parameters.

RMSNorm: y = w ⊙ x / √(mean(x²) + ε). LayerNorm: y = w ⊙ (x − mean) / √(var + ε) + b.
"""

from collections.abc import Iterable
from math import prod

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from genodiff.counter import Purpose, uniforms
from genodiff.kernels.norm import add_rms_norm, rms_norm


class Norm(nn.Module):
    """RMSNorm ("rms") or LayerNorm ("layer") over the last axis.

    `mirrored` reverses the order of the channels' weights. `bias` False: a LayerNorm has a weight
    only.
    """

    def __init__(self, kind: str, width: int, eps: float, bias: bool = True) -> None:
        super().__init__()
        self.eps, self.kind = eps, kind
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if kind == "layer" and bias else None

    def forward(
        self, x: Float[Tensor, "*shape D"], mirrored: bool = False
    ) -> Float[Tensor, "*shape D"]:
        weight = self._read_weight(mirrored)
        x = x.to(weight.dtype)
        if self.kind == "rms":
            return rms_norm(x, weight, self.eps)
        bias = self.bias.flip(0) if mirrored and self.bias is not None else self.bias
        return F.layer_norm(x, weight.shape, weight, bias, self.eps)

    def add(
        self,
        x: Float[Tensor, "*shape D"],
        added: Float[Tensor, "*shape D"],
        mirrored: bool = False,
    ) -> tuple[Float[Tensor, "*shape D"], Float[Tensor, "*shape D"]]:
        """x + added, and its norm; on a GPU one kernel."""
        if self.kind == "rms":
            return add_rms_norm(x, added, self._read_weight(mirrored), self.eps)
        total = x + added
        return total, self(total, mirrored)

    def _read_weight(self, mirrored: bool) -> Tensor:
        return self.weight.flip(0) if mirrored else self.weight


def take_last(states: Iterable[Tensor]) -> Tensor:
    """The last of them; each is let go before the next is made."""
    for state in states:
        found = state
    return found


class InitialValues:
    """The initial values of a network's parameters.

    The i-th tensor that is asked for depends on (seed, i) alone.
    """

    def __init__(self, seed: int) -> None:
        self.seed, self.index = seed, -1

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Float[Tensor, "..."]:
        """Uniform in [low, high), float64."""
        self.index += 1
        u = torch.from_numpy(uniforms(self.seed, Purpose.INIT, self.index, prod(shape)))
        return (low + (high - low) * u).reshape(shape)

    def normal(self, *shape: int, std: float) -> Float[Tensor, "..."]:
        """Normal with mean 0, float64."""
        return torch.special.ndtri(self.uniform(*shape, low=1e-16)) * std
