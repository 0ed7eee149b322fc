"""Guidance: samples of p(x) e^(beta r(x)) / Z in place of p(x), for a reward r and a strength beta.

A guidance is a function in a file of `genodiff.diffusion.guidance` or of a plug-in:

    @guidance("smc", needs="reward", calls=...)
    def smc(chain, xt, aim, **settings) -> Guided: ...

It runs a sampler (`GuidedChain`) with a hook (`Steer`) that moves logits before a draw, or
sequences after it. Strength 0 is the sampler itself, bit for bit, and asks no reward. As without
guidance, a record's result depends on its own masks and uniforms alone: the reward is asked for one
record at a time, so the composition of a batch is the same whatever its companions are.

    x (n, L)         complete sequences, as ids
    reward           (record, x) -> (n,), larger is better; finite
    potential        log psi of sequences that may still have masks; of a complete one, beta r(x)

With psi(xt) = E[e^(beta r(x0)) | xt] guidance one position at a time is exact. Nobody has that
function, so it is estimated by `drawn` completions: the masks filled from the network's own law at
xt, each position by itself, and log mean e^(beta r) over them. It is exact where the masked
positions are independent given the visible ones.

Under constraints the sampler draws what a step reveals together, by `SamplerOptions.joint`. Its law
q, of which all sequences satisfy the constraints, then takes the place of p: smc aims at
q(x) e^(beta r(x)) / Z, and completions are drawn from q's own step. Guidance that moves the logits
of single positions cannot be combined with it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.diffusion.draw import draw_again
from genodiff.diffusion.masked import Denoiser, MaskedDiffusion
from genodiff.diffusion.registries import GUIDANCES as GUIDANCES
from genodiff.diffusion.sampler import Filling, Reveal, Sampled, SamplerOptions, list_settings
from genodiff.errors import UsageError

Need = Literal["reward", "gradient", "conditional"]
_COMPLETION = 1 << 20  # numbers of a position's further uniforms: those of completions begin here


@runtime_checkable
class Reward(Protocol):
    """What is to be large, asked of complete sequences of one record at a time."""

    def __call__(self, record: int, x: Int[Tensor, "n L"]) -> Float[Tensor, " n"]:
        """The rewards in double precision, all finite."""

    def gradient(
        self, record: int, x: Int[Tensor, "n L"]
    ) -> tuple[Float[Tensor, " n"], Float[Tensor, "n L K"]]:
        """The rewards, and their slopes along the one-hot letter of each target."""


Potential = Callable[[int, Int[Tensor, "n L"], Int[Tensor, "*n m L"]], Float[Tensor, " n"]]
"""(record, x (n, L), completions: m for all, or m for each) -> log psi (n,)."""


class Guided(NamedTuple):
    """What a guidance returns, for each record."""

    x0: Int[Tensor, "B L"]
    nfe: Int[Tensor, " B"]  # evaluations of the network, of all particles together
    calls: Int[Tensor, " B"]  # sequences that the reward was asked for
    log_z: Float[Tensor, " B"]  # of the estimate of E[e^(beta r)]; NaN where there is none


@dataclass(frozen=True)
class Aim:
    """What to guide by."""

    strength: float
    reward: Reward | None = None
    conditional: Denoiser | None = None  # the network of the wanted class, where there is one
    conditional_refine: Denoiser | None = None  # the same in double precision
    potential: Potential | None = None  # in place of the reward's own, by completions


@dataclass(frozen=True)
class GuidedChain:
    """A sampler with all that it takes, but the sequences."""

    draw: Callable[..., Sampled]
    diffusion: MaskedDiffusion
    denoiser: Denoiser
    options: SamplerOptions

    def run(self, xt: Int[Tensor, "B L"], **changed: Any) -> Sampled:
        """The sampler, with these of its options changed."""
        return self.draw(self.diffusion, self.denoiser, xt, replace(self.options, **changed))


@dataclass(frozen=True)
class Guidance:
    """A registered guidance with what must be known of it before it runs."""

    run: Callable[..., Guided]  # (chain, xt (B, L), aim, its own settings)
    needs: Need
    calls: Callable[..., int]
    """(masks, most reveals, targets, its own settings) -> most calls of the reward for a record."""
    tilts: bool = False  # moves the logits of single positions, so nothing may be drawn together

    @property
    def settings(self) -> dict[str, float]:
        """The names of its own settings, with their defaults."""
        return list_settings(self.run, 3)

    def particles(self, **given: float) -> int:
        """Sequences that are drawn side by side for a record: its setting `particles`, or 1."""
        return int((self.settings | given).get("particles", 1))


Runs = TypeVar("Runs", bound=Callable[..., Guided])


def guidance(name: str, **facts: Any) -> Callable[[Runs], Runs]:
    """A decorator that registers a function as the guidance `name`; `facts` are of `Guidance`.

    Its arguments after `aim` are its own settings: numbers, each with a default. It runs without
    gradients, and not at strength 0, where the sampler runs by itself.
    """

    def register(run: Runs) -> Runs:
        @torch.no_grad()
        @wraps(run)
        def guide(chain: GuidedChain, xt: Tensor, aim: Aim, **own: float) -> Guided:
            if aim.strength:
                return run(chain, xt, aim, **own)
            done = chain.run(xt)
            none = torch.zeros(len(xt), dtype=torch.int64)
            return Guided(*done, none, none.double())

        GUIDANCES.add(name, Guidance(guide, **facts))
        return guide  # type: ignore[return-value]

    return register


def no_estimate(records: int) -> Float[Tensor, " B"]:
    """The `log_z` of a guidance that does not estimate it."""
    return torch.full((records,), math.nan, dtype=torch.float64)


class Counted:
    """An aim's reward that counts the sequences of each record that it was asked for."""

    def __init__(self, aim: Aim, records: int) -> None:
        assert aim.reward is not None
        self.reward, self.calls = aim.reward, torch.zeros(records, dtype=torch.int64)

    def __call__(self, record: int, x: Int[Tensor, "n L"]) -> Float[Tensor, " n"]:
        """The rewards; equal sequences are asked for once."""
        some, of = torch.unique(x, dim=0, return_inverse=True)
        self.calls[record] += len(some)
        return self.reward(record, some).double().to(x.device)[of]

    def gradient(
        self, record: int, x: Int[Tensor, "n L"]
    ) -> tuple[Float[Tensor, " n"], Float[Tensor, "n L K"]]:
        """The rewards and their slopes; one call each."""
        self.calls[record] += len(x)
        found, slope = self.reward.gradient(record, x)
        return found.double().to(x.device), slope.double().to(x.device)


def make_potential(reward: Reward, strength: float, mask_id: int) -> Potential:
    """log psi by completions: log mean over them of e^(strength r)."""

    def potential(record: int, x: Tensor, drawn: Tensor) -> Tensor:
        full = x[:, None]
        if (x == mask_id).any():
            full = torch.where(full == mask_id, drawn, full)
        found = strength * reward(record, full.reshape(-1, x.shape[1])).reshape(full.shape[:2])
        return found.logsumexp(1) - math.log(full.shape[1])

    return potential


def draw_completions(filling: Filling, step: Reveal, count: int) -> Int[Tensor, "A m L"]:
    """`count` ways to fill the masks of each sequence, each position by itself.

    Where constraints are drawn together (`joint`), every completion satisfies them. Uniforms are
    numbered by the sequence's own count of evaluations.
    """
    masked = filling.is_masked(step.rows)
    filled = filling.x[step.rows][:, None].repeat(1, count, 1)
    if not masked.any():
        return filled
    u, first = filling.u_token[step.rows], _COMPLETION + filling.nfe[step.rows][:, None] * count
    step = Reveal(step.rows, masked, step.logits, step.sigma)
    for k in range(count):
        own = draw_again(u, (first + k).expand_as(u))
        filled[:, k][masked] = filling.choose(step, own)
    return filled


def check_count(name: str, value: Any) -> int:
    """`value` as a whole number. Raises `UsageError` for one that is none or too small."""
    if value != int(value) or value < 1:
        raise UsageError(f"{name} = {value:g}", fix="give a whole number of at least 1")
    return int(value)
