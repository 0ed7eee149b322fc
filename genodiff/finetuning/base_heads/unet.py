"""A small U-Net: halved levels see far, and each base gets what they saw beside its own features.

    down    x_{k+1} = the mean of pairs of conv(gelu(x_k))
    up      x_k + conv(gelu([x_k, x_{k+1} twice as long]))

Source: Ronneberger et al., 2015, arXiv 1505.04597. A base reads some 2^levels · kernel neighbours
on each side. Where pairs begin depends on the window's first base, as in any U-Net.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from genodiff.backbones.backbone import InitialValues
from genodiff.finetuning.base_heads import BASE_HEADS, BaseHead, Convolution, clear_padding


@BASE_HEADS.register("unet")
class UNetHead(BaseHead):
    """Convolutions on windows that are halved and doubled again."""

    def __init__(
        self,
        width: int,
        outputs: int,
        draws: InitialValues,
        channels: int = 64,
        kernel: int = 9,
        levels: int = 3,
    ) -> None:
        super().__init__()
        self.sizes = {"channels": channels, "kernel": kernel, "levels": levels}
        self.first = Convolution(width, channels, 1, draws)
        self.down = nn.ModuleList(
            Convolution(channels, channels, kernel, draws) for _ in range(levels)
        )
        self.up = nn.ModuleList(
            Convolution(2 * channels, channels, kernel, draws) for _ in range(levels)
        )
        self.last = Convolution(channels, outputs, 1, draws)

    def forward(
        self, h: Float[Tensor, "B L D"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B L outputs"]:
        """The scores of each base."""
        length = h.shape[1]
        x = clear_padding(self.first(h.transpose(1, 2)), lengths)
        x = F.pad(x, (0, -length % (1 << len(self.down))))
        seen = []
        for layer in self.down:
            seen.append((x, lengths))
            x = clear_padding(layer(F.gelu(x)), lengths)
            x, lengths = F.avg_pool1d(x, 2), (lengths + 1) // 2
        for layer in self.up:
            before, lengths = seen.pop()
            wide = x.repeat_interleave(2, 2)
            x = before + layer(F.gelu(torch.cat([before, clear_padding(wide, lengths)], 1)))
            x = clear_padding(x, lengths)
        return self.last(F.gelu(x))[:, :, :length].transpose(1, 2)
