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

from genodiff.diffusion.loss import LossTerms
from genodiff.diffusion.masked import Clean, Denoiser, MaskedDiffusion, times
from genodiff.diffusion.registries import OBJECTIVES as OBJECTIVES
from genodiff.diffusion.sampler import Kind, Sampler, list_samplers
from genodiff.diffusion.schedule import Linear
from genodiff.errors import UsageError, did_you_mean

TimeSampling = Literal["iid", "stratified", "systematic"]


class Draws(NamedTuple):
    """The uniforms in [0, 1) that decide a batch's masks and times.

    `times` explains the last four.
    """

    u_mask: Float[Tensor, "B L"]
    u_time: Float[Tensor, " B"]
    u_shared: float | Tensor
    slot: Int[Tensor, " B"]
    n_slots: int

    def times(self, method: TimeSampling) -> Float[Tensor, " B"]:
        """A time in (0, 1] for each window."""
        return times(method, self.u_time, self.u_shared, self.slot, self.n_slots)


class WindowBound(NamedTuple):
    """Estimates for windows, in nats and double precision.

    `scale` times the sum of `ce` over a part of the window is its share.
    """

    ce: Float[Tensor, "B L"]
    scale: Float[Tensor, " B"]
    rate: Float[
        Tensor, " B"
    ]  # masked share k / n where scale * ce.sum() / n is a point of the curve C_k / k; else 0


@dataclass(frozen=True)
class Objective(ABC):
    """A process to learn, and how its times are drawn in training.

    Evaluation always draws them systematically.
    """

    diffusion: MaskedDiffusion
    time_sampling: TimeSampling = "systematic"

    kind: ClassVar[Kind] = "masked"
    figure: ClassVar[Literal["exact", "bound"]] = "bound"
    first_samplers: ClassVar[tuple[str, ...]] = ("ancestral",)

    @property
    def name(self) -> str:
        """What it is called in `OBJECTIVES`."""
        return next(name for name, cls in OBJECTIVES.items() if cls is type(self))

    @classmethod
    @cache
    def list_settings(cls) -> list[str]:
        """The names of the objective's own settings."""
        return [field.name for field in fields(cls) if field.name != "diffusion"]

    @classmethod
    def check_settings(cls, **settings: Any) -> None:
        """Raises `UsageError` for a value that the objective cannot have."""
        cls(MaskedDiffusion(Linear(), 0, (1,)), **settings)

    @property
    def samplers(self) -> dict[str, Sampler]:
        """The samplers that fit the trained network; the first is the default."""
        return list_samplers(self.kind, self.first_samplers)

    @property
    def only_goes_on(self) -> bool:
        """Whether a base is drawn and scored from those before it, not from those after it."""
        return self.kind in ("causal", "block")

    def check_fills_masks(self) -> None:
        """Raises `UsageError` where the network says nothing of a mask with both its sides."""
        if self.only_goes_on:
            what = f"a model of objective {self.name} sees nothing after a base"
            raise UsageError(what, fix="give a run of masked diffusion (--objective mdlm)")

    @property
    def curve(self) -> bool:
        """Whether `bound` draws exact counts of masks, so that its estimates trace C_k / k."""
        return False

    @property
    def bound_counts_masks(self) -> bool:
        """Whether `bound` is (n / k) times the cross-entropy of exactly k masks, and no more.

        Then any way to that cross-entropy gives the bound: whole contigs, read piece by piece.
        """
        return False

    @property
    def trains_continuous_bound(self) -> bool:
        """Whether `loss` is the bound in continuous time, whose mean no schedule changes."""
        return False

    @property
    def evaluations(self) -> int:
        """Passes of the network that one `loss` costs."""
        return 1

    @abstractmethod
    def loss(self, denoiser: Denoiser, clean: Clean, draws: Draws) -> LossTerms:
        """What training minimises, from so many `evaluations` of the network."""

    @abstractmethod
    def bound(self, denoiser: Denoiser, clean: Clean, draws: Draws) -> WindowBound:
        """Unbiased estimates of each window's figure, without gradients."""


def as_bound(nats: Float[Tensor, "B L"]) -> WindowBound:
    """Nats of each position as they are: no scale, no place on the curve."""
    ones = torch.ones(len(nats), dtype=torch.float64, device=nats.device)
    return WindowBound(nats.double(), ones, torch.zeros_like(ones))


def objective(name: str, diffusion: MaskedDiffusion, **settings: Any) -> Objective:
    """The objective called `name`. Raises `UsageError` for an unknown name or setting."""
    known = OBJECTIVES[name].list_settings()
    for key in settings:
        if key not in known:
            fix = did_you_mean(key, known)
            raise UsageError(f"the objective '{name}' has no setting '{key}'", fix=fix)
    return OBJECTIVES[name](diffusion, **settings)
