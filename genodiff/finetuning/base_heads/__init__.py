"""How the features of positions become scores at each base: the registry, and one file each.

Features h (B, L, D) become scores (B, L, outputs), of each strand in its own direction of reading.
What lies behind `lengths` is padding: a head sees zeros there, as beyond the ends of a window. A
file that is put here is found.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from genodiff.backbones.backbone import InitialValues
from genodiff.finetuning.pooling.pooling import mask_padding
from genodiff.registry import Registry


class BaseHead(nn.Module):
    """Features of positions (B, L, D) as scores at each (B, L, outputs)."""

    sizes: dict[str, int] = {}  # noqa: RUF012
    """Its options, as its class takes them again."""

    def forward(
        self, h: Float[Tensor, "B L D"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B L outputs"]:
        """The scores; those of padding mean nothing."""
        raise NotImplementedError


BASE_HEADS: Registry[type[BaseHead]] = Registry("head of bases", package=__name__)
"""The heads by name."""


class Convolution(nn.Module):
    """y_i = b + Σ_j W_j x_{i + step · (j − centre)}, as long as x; beyond its ends are zeros."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int, draws: InitialValues, step: int = 1
    ) -> None:
        super().__init__()
        self.step = step
        bound = (inputs * kernel) ** -0.5
        shape = (outputs, inputs, kernel)
        self.weight = nn.Parameter(draws.uniform(*shape, low=-bound, high=bound).float())
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Float[Tensor, "B D L"]) -> Float[Tensor, "B outputs L"]:
        wide = self.step * (self.weight.shape[2] - 1)
        x = F.pad(x, (wide // 2, wide - wide // 2))
        return F.conv1d(x, self.weight, self.bias, dilation=self.step)


def clear_padding(x: Float[Tensor, "B D L"], lengths: Int[Tensor, " B"]) -> Float[Tensor, "B D L"]:
    """Zeros behind each row's length."""
    return x.masked_fill(mask_padding(x.shape[2], lengths)[:, None], 0.0)
