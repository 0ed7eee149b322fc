"""A network with a head that scores each base, on both strands alike.

Of a network that reads both strands (PS) the features of rc x are those of x, flipped in positions
and channels. One head reads them in both directions:

    y(x) = (g(h) + M R g(S h)) / 2

S flips positions and channels, R positions, and M exchanges the outputs of the two strands
(`BaseLabels.mirror`). So y(rc x) = M R y(x), bit for bit. `average` takes the features of both
strands in prediction, `augment` and `none` those of the given one (see `head`).
"""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from genodiff.annotation.gene_decoding import decode_path
from genodiff.annotation.gene_grammar import list_introns
from genodiff.backbones.backbone import InitialValues, flip_positions
from genodiff.finetuning.base_heads import BASE_HEADS
from genodiff.finetuning.gene_chain import GeneChain
from genodiff.finetuning.head import FeatureReader
from genodiff.finetuning.protocol import Strands

_HEAD_DRAWS = 0xBA5E  # the head's place among the draws of a seed, far from those of a network


class BaseLabeller(FeatureReader):
    """Scores (B, L, outputs) at each base: logits of classes or states, or values of tracks.

    `mirror` is the number of each output on the other strand; `head` names one of `BASE_HEADS` and
    `options` are its own. With `chain`, scores are of states, whose steps are learned beside them.
    Genes have introns of the phases `introns` alone: those that labels held.
    """

    mirror: Tensor

    def __init__(
        self,
        backbone: nn.Module,
        mirror: Sequence[int],
        *,
        strands: Strands = "auto",
        complement: tuple[int, ...] | None,
        head: str = "conv",
        options: dict[str, Any] | None = None,
        seed: int = 0,
        frozen: bool = False,
        chain: bool = False,
        introns: Collection[int] = (0, 1, 2),
    ) -> None:
        super().__init__(backbone, strands=strands, complement=complement, frozen=frozen)
        self.never = list_introns({0, 1, 2}.difference(introns))
        self.chain = GeneChain() if chain else None
        width = int(backbone.d_out)  # type: ignore[arg-type]
        draws = InitialValues(seed ^ _HEAD_DRAWS)
        self.head = BASE_HEADS[head](width, len(mirror), draws, **(options or {}))
        self.register_buffer("mirror", torch.tensor(mirror), persistent=False)

    def turn(
        self, scores: Float[Tensor, "B L outputs"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B L outputs"]:
        """Scores of the reverse complement of each row, as those of the row."""
        return flip_positions(scores, lengths)[..., self.mirror]

    def forward(
        self, x0: Int[Tensor, "B L"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B L outputs"]:
        """Scores in training."""
        h = self.features(x0, lengths)
        given: Tensor = self.head(h, lengths)
        if self.strands != "conjoin":
            return given
        other = self.head(flip_positions(h, lengths).flip(2), lengths)
        return (given + self.turn(other, lengths)) / 2

    def predict(
        self, x0: Int[Tensor, "B L"], lengths: Int[Tensor, " B"]
    ) -> Float[Tensor, "B L outputs"]:
        """Scores in prediction: under `average` the mean of those of both strands."""
        scores = self(x0, lengths)
        if self.strands != "average":
            return scores
        other = self(self.other_strand(x0, lengths), lengths)
        return (scores + self.turn(other, lengths)) / 2

    def decode(
        self, scores: NDArray[np.floating], letters: bytes | None = None
    ) -> NDArray[np.int8]:
        """The states (L,) of a contig's scores (L, 13); of `letters`, genes have their codons."""
        steps = None if self.chain is None else self.chain.steps().detach().cpu().numpy()
        return decode_path(scores, steps, letters, self.never)
