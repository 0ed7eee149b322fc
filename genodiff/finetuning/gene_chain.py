"""Scores of states and of steps between them, trained as one chain (a conditional random field).

    cost = ln Σ_{all allowed paths} weight − ln Σ_{paths that agree with the known labels} weight

The network scores the 13 states at each base (`gene_grammar`); here are those of steps, the same
along the genome. A step and its mirror image share one number, so that a path and its reverse
complement weigh alike. Where labels are unknown all states agree. Sums are those of `state_chain`.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from genodiff.annotation.gene_grammar import (
    N_STATES,
    UNKNOWN,
    allow_steps,
    mirror_states,
)
from genodiff.annotation.state_chain import (
    FORBIDDEN,
    ChainScores,
    log_partition,
    marginals,
)

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
