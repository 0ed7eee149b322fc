"""Means whose weights are learnt: each of Q queries looks at features and at places.

    a_q = softmax_i(h_i · k_q + w(i) · p_q),    pooled_q = sum_i a_qi h_i

w(i) are waves of the relative place (`place_waves`). The p_q begin at 0, so that places count only
where training finds that they do. Source: Yang et al., 2016 (hierarchical attention networks).
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from genodiff.backbones.backbone import InitialValues
from genodiff.finetuning.pooling import HEADS
from genodiff.finetuning.pooling.pooling import Pooling, mask_padding, place_waves


@HEADS.register("attention")
class AttentionPooling(Pooling):
    """The weighted mean of each query."""

    rank = 2

    def __init__(self, width: int, draws: InitialValues, queries: int = 4, waves: int = 8) -> None:
        super().__init__()
        self.groups, self.channels = queries, width
        self.sizes = {"queries": queries, "waves": waves}
        bound = width**-0.5
        self.keys = nn.Parameter(draws.uniform(queries, width, low=-bound, high=bound).float())
        self.places = nn.Parameter(torch.zeros(queries, waves))

    def forward(
        self, h: Float[Tensor, "B L D"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B queries D"]:
        """The weighted means of each row; padding has no weight."""
        waves = place_waves(h.shape[1], lengths, self.places.shape[1])
        score = h @ self.keys.T + waves.to(h.dtype) @ self.places.T
        # A row without a base keeps its first position, whose features are then those of padding.
        outside = mask_padding(h.shape[1], lengths.clamp(min=1))
        weight = score.masked_fill(outside[..., None], float("-inf")).softmax(1)
        return torch.einsum("blq,bld->bqd", weight, h.masked_fill(outside[..., None], 0.0))
