"""Dilated convolutions around each base, in residual layers, and a linear layer.

    x_0 = h's projection,    x_{k+1} = x_k + conv(gelu(x_k)) with steps of 2^k bases

A base is read with (kernel − 1)/2 · (2^layers − 1) neighbours on each side. Source: Yu and Koltun,
2016, arXiv 1511.07122 (dilated convolutions).
"""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from genodiff.backbones.backbone import InitialValues
from genodiff.finetuning.base_heads import BASE_HEADS, BaseHead, Convolution, clear_padding


@BASE_HEADS.register("conv")
class ConvHead(BaseHead):
    """Residual layers of dilated convolutions."""

    def __init__(
        self,
        width: int,
        outputs: int,
        draws: InitialValues,
        channels: int = 64,
        kernel: int = 9,
        layers: int = 4,
    ) -> None:
        super().__init__()
        self.sizes = {"channels": channels, "kernel": kernel, "layers": layers}
        self.first = Convolution(width, channels, 1, draws)
        self.middle = nn.ModuleList(
            Convolution(channels, channels, kernel, draws, 1 << k) for k in range(layers)
        )
        self.last = Convolution(channels, outputs, 1, draws)

    def forward(
        self, h: Float[Tensor, "B L D"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B L outputs"]:
        """The scores of each base."""
        x = clear_padding(self.first(h.transpose(1, 2)), lengths)
        for layer in self.middle:
            x = clear_padding(x + layer(F.gelu(x)), lengths)
        return self.last(F.gelu(x)).transpose(1, 2)
