"""A network with a head that scores each base, on both strands alike.

Of a network that reads both strands (PS) the features of rc x are those of x, flipped in positions
and channels. One head reads them in both directions:

    y(x) = (g(h) + M R g(S h)) / 2

S flips positions and channels, R positions, and M exchanges the outputs of the two strands
(`BaseLabels.mirror`). So y(rc x) = M R y(x), bit for bit. `average` takes the features of both
strands in prediction, `augment` and `none` those of the given one (see `head`).

Scores of states and of steps between them, trained as one chain (a conditional random field).

    cost = ln Σ_{all allowed paths} weight − ln Σ_{paths that agree with the known labels} weight

The network scores the 13 states at each base (`gene_grammar`); here are those of steps, the same
along the genome. A step and its mirror image share one number, so that a path and its reverse
complement weigh alike. Where labels are unknown all states agree. Sums are those of `state_chain`.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from genodiff.annotation.codon_states import decode_path
from genodiff.annotation.gene_grammar import (
    N_STATES,
    UNKNOWN,
    allow_steps,
    list_introns,
    mirror_states,
)
from genodiff.annotation.state_chain import (
    FORBIDDEN,
    ChainScores,
    log_partition,
    marginals,
)
from genodiff.backbones.backbone import InitialValues, flip_positions
from genodiff.finetuning.base_heads import BASE_HEADS
from genodiff.finetuning.base_windows import Scored, Span, read_window
from genodiff.finetuning.head import FeatureReader
from genodiff.finetuning.protocol import Strands
from genodiff.runs.known_contigs import LetterSource

PIECE, BESIDE = 4096, 1024


class GeneChain(nn.Module):
    """The steps of the grammar, with a score each; without `begin` all are 0."""

    allowed: Tensor
    mirror: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(N_STATES, N_STATES))
        self.register_buffer("allowed", torch.from_numpy(allow_steps()), persistent=False)
        self.register_buffer("mirror", torch.tensor(mirror_states()), persistent=False)

    def begin(self, counts: Int[NDArray[np.int64], "S S"]) -> None:
        """Begin with the shares of steps among labels, on both strands alike.

        One more is counted of each that is allowed, so that one without a label is rare at first.
        """
        known = torch.from_numpy(counts).to(self.weight) * self.allowed + self.allowed
        known = known + known.T[self.mirror][:, self.mirror]
        share = known / known.sum(1, keepdim=True)
        with torch.no_grad():
            self.weight.copy_(share.log().masked_fill(~self.allowed, 0.0))

    def steps(self) -> Float[Tensor, "S S"]:
        """The score of each step; `FORBIDDEN` where the grammar has none."""
        turned = self.weight.T[self.mirror][:, self.mirror]
        return ((self.weight + turned) / 2).masked_fill(~self.allowed, FORBIDDEN)

    def cost(self, scores: Float[Tensor, "B L S"], labels: Int[Tensor, "B L"]) -> Float[Tensor, ""]:
        """The cost of each known base, of windows that may begin and end in any state."""
        known = labels != UNKNOWN
        states = torch.arange(N_STATES, device=scores.device)
        wrong = known[:, :, None] & (states != labels[:, :, None])
        free = scores.new_zeros(N_STATES)
        every = ChainScores(scores, self.steps(), free, free)
        agreeing = every._replace(states=scores.masked_fill(wrong, FORBIDDEN))
        total = (log_partition(every) - log_partition(agreeing)).sum()
        return total / known.sum().clamp(min=1)

    def chances(
        self,
        scores: Float[NDArray[np.floating], "L S"],
        piece: int = PIECE,
        beside: int = BESIDE,
        never: Sequence[int] = (),
    ) -> Float[NDArray[np.float32], "L S"]:
        """The chance of each state at each base of a contig, given all others; 0 of `never`.

        Each piece is read with `beside` bases on either side, in place of the whole contig.
        """
        found, device = np.empty(scores.shape, np.float32), self.weight.device
        for first in range(0, len(scores), piece):
            start, end = max(0, first - beside), first + piece + beside
            here = torch.from_numpy(scores[start:end].astype(np.float32))[None].to(device)
            here[..., list(never)] = FORBIDDEN
            free = here.new_zeros(N_STATES)
            told = marginals(ChainScores(here, self.steps().detach(), free, free))[0].cpu().numpy()
            last = min(first + piece, len(scores))
            found[first:last] = told[first - start : last - start]
        return found


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

    def turn(self, scores: Tensor, lengths: Int[Tensor, " B"]) -> Tensor:
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

    @torch.no_grad()
    def score_cores(
        self, genome: LetterSource, cores: Sequence[Span], core: int, context: int
    ) -> Iterator[Scored]:
        """The cores with their scores; each is read with `context` bases on both sides."""
        self.eval()
        width = core + 2 * context
        for some in self.split(np.full(len(cores), width)):
            places = [(one, start - context, start - context + width)
                      for one, start, _ in cores[some]]  # fmt: skip
            ids = np.stack([read_window(genome, place) for place in places]).astype(np.int64)
            x = torch.from_numpy(ids).to(self.device)
            scores = self.predict(x, torch.full((len(x),), width, device=x.device))
            for span, one in zip(cores[some], scores.float().cpu().numpy(), strict=True):
                yield span, one[context : context + span[2] - span[1]]

    def decode(
        self, scores: NDArray[np.floating], letters: bytes | None = None
    ) -> NDArray[np.int8]:
        """The states (L,) of a contig's scores (L, 13); of `letters`, genes have their codons."""
        steps = None if self.chain is None else self.chain.steps().detach().cpu().numpy()
        return decode_path(scores, steps, letters, self.never)
