"""The interface of training objectives: a loss for training, and a figure in the same nats for
evaluation.

    loss     sums over a batch, from the batch's own uniforms; see `LossTerms`
    bound    an estimate for each window, as stated by `figure`:
             "exact"   -log p(x0) itself                         (next token)
             "bound"   an upper bound on -log p(x0), closed: no truncation, no free token
             (all others)
    kind     the parametrisation of the network's logits, which determines the samplers that fit

Objectives share the process (`MaskedDiffusion`), the network's interface (xt, sigma) -> logits and
the count of tokens, so that nats per token are comparable between any two of them. A new one is one
file in `genodiff.diffusion.objectives`, or a plug-in.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.diffusion.loss import LossTerms, WindowBound
from genodiff.diffusion.masked import Clean, Denoiser, MaskedDiffusion, counts, times
from genodiff.diffusion.registries import OBJECTIVES as OBJECTIVES
from genodiff.diffusion.sampler import Kind, Sampler, list_samplers
from genodiff.diffusion.schedule import Linear
from genodiff.errors import UsageError
from genodiff.registry import refuse_unknown

TimeSampling = Literal["iid", "stratified", "systematic"]


class Draws(NamedTuple):
    """The uniforms in [0, 1) that determine a batch's masks and times.

    The last four are arguments of `genodiff.diffusion.masked.times`.
    """

    u_mask: Float[Tensor, "B L"]
    u_time: Float[Tensor, " B"]
    u_shared: float | Tensor
    slot: Int[Tensor, " B"]
    n_slots: int

    def times(self, method: TimeSampling) -> Float[Tensor, " B"]:
        """Return a time in (0, 1] for each window."""
        return times(method, self.u_time, self.u_shared, self.slot, self.n_slots)

    def counts(self, clean: Clean) -> Int[Tensor, " B"]:
        """Return how many positions to mask of each window, systematic over all windows."""
        return counts(self.times("systematic").to(clean.x0.device), clean.n)


@dataclass(frozen=True)
class Objective(ABC):
    """A process to be learned, with the sampling of its times in training.

    In evaluation times are always sampled systematically.
    """

    diffusion: MaskedDiffusion
    time_sampling: TimeSampling = "systematic"

    kind: ClassVar[Kind] = "masked"
    figure: ClassVar[Literal["exact", "bound"]] = "bound"
    first_samplers: ClassVar[tuple[str, ...]] = ("ancestral",)
    curve: ClassVar[bool] = False
    """Whether `bound` masks exact counts k, so that its estimates lie on the curve C_k / k."""
    bound_counts_masks: ClassVar[bool] = False
    """Whether `bound` is (n / k) times the cross-entropy of exactly k masks, and nothing else: then
    it also follows from that cross-entropy on whole contigs, read in pieces."""
    evaluations: ClassVar[int] = 1
    """The number of network evaluations in one `loss`."""

    @property
    def name(self) -> str:
        """The name in `OBJECTIVES`."""
        return next(name for name, cls in OBJECTIVES.items() if cls is type(self))

    @classmethod
    @cache
    def list_settings(cls) -> list[str]:
        """List the names of the objective's own settings."""
        return [field.name for field in fields(cls) if field.name != "diffusion"]

    @classmethod
    def check_settings(cls, **settings: Any) -> None:
        """Raises `UsageError` for a value that the objective does not accept."""
        cls(MaskedDiffusion(Linear(), 0, (1,)), **settings)

    @property
    def samplers(self) -> dict[str, Sampler]:
        """The samplers that fit the trained network; the first is the default."""
        return list_samplers(self.kind, self.first_samplers)

    @property
    def is_causal(self) -> bool:
        """Whether predictions depend on preceding bases only (or on preceding blocks)."""
        return self.kind in ("causal", "block")

    def check_fills_masks(self) -> None:
        """Raises `UsageError` if predictions do not use both sides of a masked base."""
        if self.is_causal:
            what = f"a model of objective {self.name} sees nothing after a base"
            raise UsageError(what, fix="give a run of masked diffusion (--objective mdlm)")

    @abstractmethod
    def loss(self, denoiser: Denoiser, clean: Clean, draws: Draws) -> LossTerms:
        """Return the loss that training minimises, from `evaluations` passes of the network."""

    @abstractmethod
    def bound(self, denoiser: Denoiser, clean: Clean, draws: Draws) -> WindowBound:
        """Return unbiased estimates of each window's `figure`, without gradients."""


def as_bound(nats: Float[Tensor, "B L"]) -> WindowBound:
    """Wrap the nats of each position as a bound without scaling, and not on the curve."""
    ones = torch.ones(len(nats), dtype=torch.float64, device=nats.device)
    return WindowBound(nats.double(), ones, torch.zeros_like(ones))


def objective(name: str, diffusion: MaskedDiffusion, **settings: Any) -> Objective:
    """Create the objective `name`. Raises `UsageError` for an unknown name or setting."""
    refuse_unknown(f"the objective '{name}'", settings, OBJECTIVES[name].list_settings())
    return OBJECTIVES[name](diffusion, **settings)
