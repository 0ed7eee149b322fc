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

from genodiff.backbones.backbone import InitialValues, flip_positions, stack_strands
from genodiff.backbones.caduceus import Caduceus
from genodiff.errors import UsageError

Pooling = Literal["mean", "max", "first", "last", "sum"]

_STD = 0.02


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


def strand_features(
    backbone: nn.Module, x: Int[Tensor, "B L"], lengths: Int[Tensor, " B"] | None = None
) -> Float[Tensor, "strands B L D"]:
    """What a network says of each strand that it reads, in that strand's own direction: one, or
    with a paired network two.
    """
    h = backbone.features(x, None, lengths)  # type: ignore[operator]
    if not backbone.paired:
        return h[None]
    given, other = h.chunk(2, -1)
    return torch.stack([given, flip_positions(other, lengths).flip(2)])


class SequenceClassifier(nn.Module):
    """Scores (B, n_classes) of sequences. `complement` maps each id to its complement and is needed
    by conjoining.
    """

    complement: Tensor | None

    def __init__(
        self,
        backbone: nn.Module,
        n_classes: int,
        *,
        pooling: Pooling = "mean",
        conjoin_train: bool = False,
        conjoin_eval: bool = False,
        complement: tuple[int, ...] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.backbone, self.pooling = backbone, pooling
        self.paired = isinstance(backbone, Caduceus) and backbone.paired
        self.conjoin_train, self.conjoin_eval = conjoin_train, conjoin_eval
        width = int(backbone.d_out) // (2 if self.paired else 1)  # type: ignore[arg-type]
        self.register_buffer(
            "complement", None if complement is None else torch.tensor(complement), persistent=False
        )
        self.score = nn.Parameter(InitialValues(seed).normal(n_classes, width, std=_STD).float())

    @property
    def conjoins(self) -> bool:
        """Whether the other strand is read too, in this mode. A paired network reads both by
        itself.
        """
        return not self.paired and (self.conjoin_train if self.training else self.conjoin_eval)

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
        if self.conjoins:
            if other is None and self.complement is None:
                raise UsageError(
                    "conjoining needs the other strand, or a complement to make it with",
                    fix="give a complement",
                )
            strands.append(
                stack_strands(x, self.complement, lengths)[len(x) :]  # type: ignore[arg-type]
                if other is None
                else other
            )
        found = [
            F.linear(pool(h, self.pooling, lengths), self.score)
            for s in strands
            for h in strand_features(self.backbone, s, lengths)
        ]
        return torch.stack(found).mean(0)
