"""Each base by itself: y_i = b + W h_i."""

from jaxtyping import Float, Int
from torch import Tensor

from genodiff.backbones.backbone import InitialValues
from genodiff.finetuning.base_heads import BASE_HEADS, BaseHead, Convolution


@BASE_HEADS.register("linear")
class LinearHead(BaseHead):
    """A linear layer, the same at each base."""

    def __init__(self, width: int, outputs: int, draws: InitialValues) -> None:
        super().__init__()
        self.last = Convolution(width, outputs, 1, draws)

    def forward(
        self, h: Float[Tensor, "B L D"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B L outputs"]:
        """The scores of each base."""
        return self.last(h.transpose(1, 2)).transpose(1, 2)
