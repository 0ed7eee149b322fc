"""One mean over all bases: where a feature stands does not count."""

from jaxtyping import Float, Int
from torch import Tensor

from genodiff.backbones.backbone import InitialValues
from genodiff.finetuning.pooling import HEADS
from genodiff.finetuning.pooling.pooling import Pooling, mask_padding


@HEADS.register("mean")
class MeanPooling(Pooling):
    """mean_{i < length} h_i."""

    rank, reads_places, keeps_channels = 0, False, True

    def __init__(self, width: int, draws: InitialValues) -> None:
        super().__init__()
        self.groups, self.channels = 1, width

    def forward(
        self, h: Float[Tensor, "B L D"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B 1 D"]:
        """The mean over bases only."""
        total = h.masked_fill(mask_padding(h.shape[1], lengths)[..., None], 0.0).sum(1)
        return (total / lengths.clamp(min=1)[:, None])[:, None]
