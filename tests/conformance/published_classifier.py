"""The published sequence classifier: what the head of `finetune` is compared with.

Pool over positions, one linear map without bias, mean over strands:
    z = mean over strands of W pool(h)

The strands are the two of a paired network; or, where `conjoin` asks for it, x and rc x, each
through the network by itself (post-hoc conjoining). Each strand is pooled in its own direction of
reading, over its own length, never over padding. Source: Schiff et al., 2024, arXiv 2403.03234,
appendix D.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from genodiff.backbones.backbone import flip_positions, stack_strands

Pooling = Literal["mean", "max", "first", "last", "sum"]


def pool(
    h: Float[Tensor, "B L D"], how: Pooling, lengths: Int[Tensor, " B"] | None = None
) -> Float[Tensor, "B D"]:
    """One vector for each row, of the positions within its length (all of them where `lengths` is
    None).
    """
    if how == "first":
        return h[:, 0]
    if lengths is None:
        return {"mean": h.mean(1), "max": h.amax(1), "last": h[:, -1], "sum": h.sum(1)}[how]
    if how == "last":
        return h[torch.arange(len(h), device=h.device), lengths.clamp(min=1) - 1]
    here = (torch.arange(h.shape[1], device=h.device) < lengths[:, None])[..., None]
    if how == "max":
        return h.masked_fill(~here, -torch.inf).amax(1)
    total = h.masked_fill(~here, 0.0).sum(1)
    return total if how == "sum" else total / lengths.clamp(min=1)[:, None]


class SequenceClassifier(nn.Module):
    """Scores (B, n_classes) of sequences. `complement` maps each id to its complement and makes the
    other strand where `conjoin` asks for it and none is given. A paired network reads both itself.
    """

    def __init__(
        self,
        backbone: nn.Module,
        n_classes: int,
        *,
        pooling: Pooling = "mean",
        conjoin: bool = False,
        complement: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__()
        self.backbone, self.pooling = backbone, pooling
        self.conjoins = conjoin and not backbone.paired
        self.complement = complement
        width = int(backbone.d_out) // (2 if backbone.paired else 1)
        self.score = nn.Parameter(torch.zeros(n_classes, width))

    def forward(
        self,
        x: Int[Tensor, "B L"],
        lengths: Int[Tensor, " B"] | None = None,
        other: Int[Tensor, "B L"] | None = None,
    ) -> Float[Tensor, "B n_classes"]:
        """Scores. `other` is the other strand where it is not the reverse complement of `x` within
        its length.
        """
        strands = [x]
        if self.conjoins and other is None:
            other = stack_strands(x, torch.tensor(self.complement), lengths)[len(x) :]
        if self.conjoins:
            strands.append(other)
        pooled = []
        for strand in strands:
            h = self.backbone.features(strand, None, lengths)
            if self.backbone.paired:  # each in its own direction of reading
                h, back = h.chunk(2, -1)
                pooled.append(pool(flip_positions(back, lengths).flip(2), self.pooling, lengths))
            pooled.append(pool(h, self.pooling, lengths))
        return torch.stack([F.linear(p, self.score) for p in pooled]).mean(0)
