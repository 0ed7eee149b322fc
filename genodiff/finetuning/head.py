"""A network with a head: a pooling of its features, and a linear layer, z = W · pool(h) + b.

The poolings are the registry `HEADS` (`finetuning/pooling`). The simplest is the mean over bases.

Reverse complement, `Strands`:
    conjoin    a network that reads both strands (PS): each strand is pooled, both go through the
               same head, the scores are averaged, in training and in prediction (Schiff et al.,
               2024, App. D.2: conjoin_train_decoder)
    average    one strand at a time (Ph): training turns examples at random, prediction averages the
               scores of x and rc x
    augment    as `average` in training, the given strand alone in prediction
    none       the given strand alone
`auto` is `conjoin` or `average` by the network, and `none` for text and for tasks whose sequences
are oriented.
Each strand is pooled in its own direction of reading: place i of one is place length − 1 − i of
the other. Padding has no part in it, and the network does not see it either.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from genodiff.backbones.backbone import InitialValues, flip_positions
from genodiff.errors import UsageError
from genodiff.finetuning.batches import Index
from genodiff.finetuning.pooling import HEADS
from genodiff.finetuning.protocol import FitSettings, Strands

_HEAD_DRAWS = 0x4EAD  # the head's place among the draws of a seed, far from those of a network
_POOLING_DRAWS = 0x9001  # and that of its pooling
_CPU_BASES, _GPU_BASES = 1 << 14, 1 << 19  # of a pass, with padding and both strands


def choose_strands(backbone: nn.Module, wanted: Strands, has_complement: bool) -> Strands:
    """`wanted`, with `auto` resolved.

    `auto` is `conjoin` if the network reads both strands, else `average`, and `none` for text.
    Raises `UsageError` for what the network cannot do.
    """
    paired = bool(getattr(backbone, "paired", False))
    if wanted == "auto":
        return "conjoin" if paired else "average" if has_complement else "none"
    if wanted == "conjoin" and not paired:
        fix = "give --rc average"
        raise UsageError("--rc conjoin needs a network that reads both strands (PS)", fix=fix)
    if paired and wanted in ("average", "augment"):
        what = f"--rc {wanted} is for networks of one strand; this one reads both"
        raise UsageError(what, fix="give --rc conjoin")
    if wanted in ("average", "augment") and not has_complement:
        raise UsageError(f"--rc {wanted} needs an alphabet with a complement", fix="give --rc none")
    return wanted


def list_heads() -> list[str]:
    """The heads' names, the simplest first."""
    return sorted(HEADS, key=lambda name: HEADS[name].rank)


class FeatureReader(nn.Module):
    """A network whose features a head reads, and what is done about the reverse complement.

    `complement` maps token ids. With `frozen`, training changes the head alone.
    """

    complement: Tensor | None

    def __init__(
        self,
        backbone: nn.Module,
        *,
        strands: Strands,
        complement: tuple[int, ...] | None,
        frozen: bool = False,
    ) -> None:
        super().__init__()
        self.frozen, self.backbone = frozen, backbone
        self.strands = choose_strands(backbone, strands, complement is not None)
        self.register_buffer(
            "complement", None if complement is None else torch.tensor(complement), persistent=False
        )

    @property
    def paired(self) -> bool:
        """Whether the network reads both strands."""
        return bool(getattr(self.backbone, "paired", False))

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return next(self.parameters()).device

    def split(self, lengths: Index) -> list[slice]:
        """A batch of sequences of these lengths in passes that fit the device, of equal size."""
        most = _GPU_BASES if self.device.type == "cuda" else _CPU_BASES
        bases = len(lengths) * int(lengths.max()) * (1 + self.paired)
        rows = max(1, math.ceil(len(lengths) / max(1, math.ceil(bases / most))))
        return [slice(i, min(i + rows, len(lengths))) for i in range(0, len(lengths), rows)]

    def features(
        self, x0: Int[Tensor, "B L"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B L C"]:
        """The network's features of a clean sequence, in float32."""
        # A clean sequence: no noise.
        sigma = torch.zeros(len(x0), device=x0.device, dtype=torch.float32)
        even = bool((lengths == x0.shape[1]).all())
        fixed = self.frozen and self.training
        with torch.set_grad_enabled(torch.is_grad_enabled() and not fixed):
            found = self.backbone.features(x0, sigma, None if even else lengths)  # type: ignore[operator]
        return found.float()  # type: ignore[no-any-return]

    def other_strand(
        self, x0: Int[Tensor, "B L"], lengths: Int[Tensor, " B"]
    ) -> Int[Tensor, "B L"]:
        """The reverse complement of each row within its own length; padding stays on the right."""
        assert self.complement is not None
        at = torch.arange(x0.shape[1], device=x0.device)
        source = torch.where(at < lengths[:, None], lengths[:, None] - 1 - at, at)
        return self.complement[x0].gather(1, source)

    def turn(self, scores: Tensor, lengths: Int[Tensor, " B"]) -> Tensor:
        """Scores of the reverse complement of each row, as those of the row."""
        return scores

    def predict(self, x0: Int[Tensor, "B L"], lengths: Int[Tensor, " B"]) -> Tensor:
        """Scores in prediction: under `average` the mean of those of both strands."""
        scores: Tensor = self(x0, lengths)
        if self.strands != "average":
            return scores
        return (scores + self.turn(self(self.other_strand(x0, lengths), lengths), lengths)) / 2


class Classifier(FeatureReader):
    """Scores (B, n_out) of sequences: logits of classes or of yes/no answers, or a value.

    The `settings` of a fit name its pooling, whose own `options` are given where it was kept.
    """

    def __init__(
        self,
        backbone: nn.Module,
        n_out: int,
        settings: FitSettings,
        complement: tuple[int, ...] | None,
        *,
        options: dict[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        frozen = settings.method == "frozen"
        super().__init__(backbone, strands=settings.rc, complement=complement, frozen=frozen)
        self.dropout = settings.dropout
        if options is None:
            options = {"parts": settings.parts} if settings.head == "parts" else {}
        self.pooling = HEADS[settings.head](
            int(backbone.d_out) // (2 if self.paired else 1),  # type: ignore[arg-type]
            InitialValues(seed ^ _POOLING_DRAWS),
            **options,
        )
        width = self.pooling.groups * self.pooling.channels
        draws = InitialValues(seed ^ _HEAD_DRAWS)
        bound = width**-0.5
        self.weight = nn.Parameter(draws.uniform(n_out, width, low=-bound, high=bound).float())
        self.bias = nn.Parameter(torch.zeros(n_out))

    def pool(
        self, h: Float[Tensor, "B L C"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "strands B D"]:
        """The pooled features of each row, for the given strand.

        With paired strands, those of the other strand too.
        """
        if not self.paired:
            return self.pooling(h, lengths).flatten(1)[None]
        given, other = h.chunk(2, -1)
        strands = [self.pooling(given, lengths)]
        if self.strands == "conjoin":
            # The second half is flipped over channels and positions. Where each channel is pooled
            # by itself it may be turned back after, where there is less to turn.
            if self.pooling.reads_places:
                other = flip_positions(other, lengths)
            if self.pooling.keeps_channels:
                strands.append(self.pooling(other, lengths).flip(-1))
            else:
                strands.append(self.pooling(other.flip(-1), lengths))
        return torch.stack(strands).flatten(2)

    def forward(
        self,
        x0: Int[Tensor, "B L"],
        lengths: Int[Tensor, " B"],
        dropped: Float[Tensor, "B D"] | None = None,
    ) -> Float[Tensor, "B n_out"]:
        """Scores in training; `dropped` are uniforms that say which pooled features drop out."""
        pooled = self.pool(self.features(x0, lengths), lengths)
        if dropped is not None and self.dropout:
            pooled = pooled * (dropped >= self.dropout) / (1 - self.dropout)
        return F.linear(pooled, self.weight, self.bias).mean(0)

    def pooled_rows(
        self, x0: Int[Tensor, "B L"], lengths: Int[Tensor, " B"]
    ) -> list[Float[Tensor, "passes strands 1 D"]]:
        """The pooled features of each row by itself, unpadded, of each strand that is read.

        Only the features are computed together. So a row's bits do not depend on its neighbours
        where those of its features do not.
        """
        passes = [self.features(x0, lengths)]
        if self.strands == "average":
            passes.append(self.features(self.other_strand(x0, lengths), lengths))
        return [
            torch.stack([self.pool(h[i, None, :n].contiguous(), lengths[i, None]) for h in passes])
            for i, n in enumerate(lengths.tolist())
        ]

    def scores_of(self, row: Float[Tensor, "passes strands 1 D"]) -> Float[Tensor, "1 n_out"]:
        """The scores of a row of `pooled_rows`, as `predict` gives them."""
        return F.linear(row, self.weight, self.bias).mean(1).mean(0)
