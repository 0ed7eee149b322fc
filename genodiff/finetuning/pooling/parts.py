"""The means of P stretches of a sequence, as equal as can be: where a motif stands then counts."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.backbones.backbone import InitialValues
from genodiff.finetuning.pooling import HEADS
from genodiff.finetuning.pooling.pooling import Pooling


def average_parts(
    h: Float[Tensor, "B L D"], parts: int, lengths: Int[Tensor, " B"]
) -> Float[Tensor, "B parts D"]:
    """The means over stretches of a row: position i is in stretch i · parts // length.

    A stretch without a base is 0.
    """
    at = torch.arange(h.shape[1], device=h.device)
    stretch = torch.where(at < lengths[:, None], at * parts // lengths.clamp(min=1)[:, None], parts)
    members = F.one_hot(stretch, parts + 1)[..., :parts].to(h.dtype)
    return torch.einsum("blp,bld->bpd", members, h) / members.sum(1).clamp(min=1)[..., None]


@HEADS.register("parts")
class PartsPooling(Pooling):
    """The mean of each stretch."""

    rank, keeps_channels = 1, True

    def __init__(self, width: int, draws: InitialValues, parts: int) -> None:
        super().__init__()
        self.groups, self.channels, self.sizes = parts, width, {"parts": parts}

    def forward(
        self, h: Float[Tensor, "B L D"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B parts D"]:
        """The means of the stretches of each row."""
        return average_parts(h, self.groups, lengths)
