"""A small convolution over positions that knows places, then means of stretches and one maximum.

    z = gelu(conv(h, waves of the relative place)),    every `stride` bases

The means over stretches of z say where something stands to within a few bases, and the maximum over
all says whether it stands anywhere. The convolution sees zeros beyond both ends of a sequence.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from genodiff.backbones.backbone import InitialValues
from genodiff.finetuning.pooling import HEADS
from genodiff.finetuning.pooling.parts import average_parts
from genodiff.finetuning.pooling.pooling import Pooling, mask_padding, place_waves


@HEADS.register("conv")
class ConvPooling(Pooling):
    """Means of stretches of a convolution, and its maximum.

    It has `channels` filters of `kernel` bases, and tells places by `waves` numbers.
    """

    rank = 3

    def __init__(
        self,
        width: int,
        draws: InitialValues,
        channels: int = 32,
        kernel: int = 9,
        stride: int = 2,
        stretches: int = 16,
        waves: int = 8,
    ) -> None:
        super().__init__()
        self.groups, self.channels = stretches + 1, channels
        self.stride, self.waves = stride, waves
        self.sizes = {
            "channels": channels, "kernel": kernel, "stride": stride, "stretches": stretches,
            "waves": waves,
        }  # fmt: skip
        inputs = width + waves
        bound = (inputs * kernel) ** -0.5
        shape = (channels, inputs, kernel)
        self.filters = nn.Parameter(draws.uniform(*shape, low=-bound, high=bound).float())
        self.offsets = nn.Parameter(torch.zeros(channels))

    def forward(
        self, h: Float[Tensor, "B L D"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B groups channels"]:
        """The means of stretches of each row, then the maximum."""
        lengths = lengths.clamp(min=1)
        outside = mask_padding(h.shape[1], lengths)[..., None]
        waves = place_waves(h.shape[1], lengths, self.waves).to(h.dtype)
        x = torch.cat([h, waves], 2).masked_fill(outside, 0.0).transpose(1, 2)
        kernel = self.filters.shape[2]
        x = F.pad(x, (kernel // 2, (kernel - 1) // 2))  # centred on each base
        z = F.gelu(F.conv1d(x, self.filters, self.offsets, self.stride)).transpose(1, 2)
        answers = (lengths + self.stride - 1) // self.stride  # at bases 0, stride, 2 stride, ...
        means = average_parts(z, self.groups - 1, answers)
        beyond = mask_padding(z.shape[1], answers)[..., None]
        largest = z.masked_fill(beyond, float("-inf")).amax(1, keepdim=True)
        return torch.cat([means, largest], 1)
