"""Guidance by many sequences for each record: SMC, beam search and the best of n.

All N particles of a record share its order of unmasking and have tokens of their own; the first has
those of the unguided sample.

`smc` is sequential Monte Carlo. After each step a particle's weight grows by psi(now) over
psi(before), with psi the potential by completions. The effective sample size is (sum w)^2 over
sum w^2. Where it falls to `threshold` N, particles are drawn anew by their weights, systematically.
Whatever psi is, the weights of a particle multiply to e^(beta r(x0)). So the product of mean
weights estimates

    Z  =  E[e^(beta r(x))]

without bias. Few completions make psi noisy, and the estimate noisier, but not biased. As N grows,
a particle drawn by the last weights follows p(x) e^(beta r(x)) / Z, given the order.

`beam` keeps the `width` best by psi after each step and continues each N / width times. `best-of-n`
draws n samples and keeps the best. Both are baselines: they follow no law that is known.

Sources: Del Moral, Doucet and Jasra 2006 (SMC samplers); Wu et al. 2023, arXiv 2306.17775 (twisting
by a denoiser); Singhal et al. 2025, arXiv 2501.06848 (Feynman-Kac steering).
"""

import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from genodiff.diffusion.draw import draw_again
from genodiff.diffusion.guided import (
    Aim,
    Counted,
    Guided,
    GuidedChain,
    check_count,
    draw_completions,
    guidance,
    make_potential,
    no_estimate,
)
from genodiff.diffusion.sampler import Filling, JointDraw, Reveal, Sampled, Steer
from genodiff.errors import UsageError

# Numbers of further uniforms (`stream`), apart from those of samplers and of completions.
_PARTICLE, _RESAMPLE, _LAST = 1 << 41, 1 << 42, 1 << 43


def resample(weight: Float[Tensor, " N"], u: float) -> Int[Tensor, " N"]:
    """Which particle each new one copies: systematic, so w_i N times rounded up or down.

    Each is copied N w_i times on average over u in [0, 1). A copy stays in its own place where it
    can, so that equal weights change nothing.
    """
    n = len(weight)
    edges = (weight / weight.sum()).cumsum(0) * n
    edges[-1] = n
    points = torch.arange(n, dtype=torch.float64, device=weight.device) + u
    chosen = torch.searchsorted(edges, points, right=True).clamp(max=n - 1)
    copies = torch.bincount(chosen, minlength=n)
    place = torch.arange(n, device=weight.device)
    stays = copies > 0
    result = torch.where(stays, place, -1)
    spare = place.repeat_interleave((copies - 1).clamp(min=0))
    result[~stays] = spare
    return result


class _Together:
    """A `JointDraw` of records, for `size` rows of each."""

    def __init__(self, joint: JointDraw, size: int) -> None:
        self.joint, self.size = joint, size

    def __call__(self, row: int, *given: Any) -> tuple[Tensor, Any]:
        return self.joint(row // self.size, *given)


class _Population(Steer):
    """Particles of records, in groups of `size` rows, and their weights."""

    def __init__(
        self, chain: GuidedChain, xt: Int[Tensor, "B L"], aim: Aim, size: int, drawn: int = 1
    ) -> None:
        self.chain, self.xt, self.aim, self.size, self.drawn = chain, xt, aim, size, drawn
        self.reward = Counted(aim, len(xt))
        own = make_potential(self.reward, aim.strength, chain.diffusion.mask_id)
        self.potential = aim.potential or own
        # Any uniform of a record names it; that of its first position does.
        self.order = chain.options.u_order[:, :1].double().cpu().sum(1) % 1.0
        self.level = torch.zeros(len(xt), size, dtype=torch.float64)  # log psi now
        self.log_weight = torch.zeros_like(self.level)
        self.log_z = torch.zeros(len(xt), dtype=torch.float64)

    def run(self, steer: Steer | None) -> Sampled:
        """The chain on `size` particles of each record, the first with the record's uniforms."""
        options, size = self.chain.options, self.size
        u = options.u_token.double()
        streams = [u, *(draw_again(u, _PARTICLE + i) for i in range(1, size))]
        return self.chain.run(
            self.xt.repeat_interleave(size, 0),
            u_order=options.u_order.repeat_interleave(size, 0),
            u_token=torch.stack(streams, 1).reshape(-1, self.xt.shape[1]),
            steer=steer,
            joint=None if options.joint is None else _Together(options.joint, size),
        )

    def pick(
        self, done: Sampled, chosen: Int[Tensor, " B"], log_z: Float[Tensor, " B"] | None = None
    ) -> Guided:
        """The result of particle `chosen` of each record."""
        rows = torch.arange(len(chosen)) * self.size + chosen
        nfe = done.nfe.reshape(-1, self.size).sum(1)
        log_z = no_estimate(len(chosen)) if log_z is None else log_z
        return Guided(done.x0[rows.to(done.x0.device)], nfe, self.reward.calls, log_z)

    def move(self, filling: Filling, step: Reveal) -> None:
        """Weigh the particles that have changed; then those of a record may change places."""
        drawn = draw_completions(filling, step, self.drawn)
        groups: dict[int, list[int]] = {}
        for a, record in enumerate((step.rows // self.size).tolist()):
            groups.setdefault(record, []).append(a)
        for record, mine in groups.items():
            here = step.rows[mine]
            # One call of the reward for all particles of the record.
            now = self.potential(record, filling.x[here], drawn[mine]).cpu()
            place = (here % self.size).cpu()
            self.log_weight[record, place] += now - self.level[record, place]
            self.level[record, place] = now
            chosen = self.select(filling, record)
            if chosen is not None:  # particle i becomes a copy of particle chosen[i]
                group = slice(record * self.size, (record + 1) * self.size)
                filling.x[group] = filling.x[group][chosen]
                self.level[record] = self.level[record][chosen]

    def select(self, filling: Filling, record: int) -> Int[Tensor, " N"] | None:
        """The particles of the record that go on, or None: all do as they are."""
        return None


class _Weighted(_Population):
    """Drawn anew by weight where too few particles carry it."""

    threshold = 0.5

    def select(self, filling: Filling, record: int) -> Int[Tensor, " N"] | None:
        """Systematic resampling at a small effective sample size."""
        log_weight = self.log_weight[record]
        weight = log_weight.softmax(0)
        if 1 / float((weight**2).sum()) > self.threshold * self.size:
            return None
        self.log_z[record] += log_weight.logsumexp(0) - math.log(self.size)
        self.log_weight[record] = 0.0
        # The uniform is the record's, numbered by its evaluations.
        done = int(filling.nfe[record * self.size : (record + 1) * self.size].sum())
        return resample(weight, float(draw_again(self.order[record], _RESAMPLE + done)))


class _Beam(_Population):
    """The best `width` go on, each as often as the others."""

    width = 1

    def select(self, filling: Filling, record: int) -> Int[Tensor, " N"]:
        """Copies of the best by their potential; equal ones by their place."""
        best = self.level[record].argsort(descending=True, stable=True)[: self.width]
        return best.repeat(self.size // self.width)


def _count_smc(
    masks: int,
    reveals: int,
    targets: int,
    particles: float = 16.0,
    drawn: float = 4.0,
    **rest: float,
) -> int:
    """For beam, too: neither `threshold` nor `width` changes the number of completions."""
    size, several = check_count("particles", particles), check_count("drawn", drawn)
    return size * ((reveals - 1) * several + 1) if reveals else 0


@guidance("smc", needs="reward", calls=_count_smc)
def smc(
    chain: GuidedChain,
    xt: Int[Tensor, "B L"],
    aim: Aim,
    particles: float = 16.0,
    drawn: float = 4.0,
    threshold: float = 0.5,
) -> Guided:
    """One particle by its weight; `log_z` is log of an unbiased estimate of E[e^(beta r)]."""
    size, count = check_count("particles", particles), check_count("drawn", drawn)
    if not 0 <= threshold <= 1:
        raise UsageError(f"threshold = {threshold:g}", fix="give 0 (never resample) to 1")
    steer = _Weighted(chain, xt, aim, size, count)
    steer.threshold = threshold
    done = steer.run(steer)
    # A record without masks was never weighed: it is what it is.
    weight = steer.log_weight
    edges = weight.softmax(1).cumsum(1)
    u = draw_again(steer.order, _LAST)
    chosen = (edges[:, :-1] <= u[:, None] * edges[:, -1:]).sum(1)
    return steer.pick(done, chosen, steer.log_z + weight.logsumexp(1) - math.log(size))


@guidance("beam", needs="reward", calls=_count_smc)
def beam(
    chain: GuidedChain,
    xt: Int[Tensor, "B L"],
    aim: Aim,
    particles: float = 16.0,
    width: float = 4.0,
    drawn: float = 4.0,
) -> Guided:
    """The best particle at the end; the strength's sign says what is best."""
    size, count = check_count("particles", particles), check_count("drawn", drawn)
    kept = check_count("width", width)
    if size % kept:
        what = f"{size} particles are no multiple of a beam of {kept}"
        raise UsageError(what, fix="give 16 and 4, for example")
    steer = _Beam(chain, xt, aim, size, count)
    steer.width = kept
    return steer.pick(steer.run(steer), steer.level.argmax(1))


def _count_best(masks: int, reveals: int, targets: int, particles: float = 16.0) -> int:
    return check_count("particles", particles)


@guidance("best-of-n", needs="reward", calls=_count_best)
def best_of_n(
    chain: GuidedChain, xt: Int[Tensor, "B L"], aim: Aim, particles: float = 16.0
) -> Guided:
    """The best of `particles` unguided samples; the strength's sign says what is best."""
    size = check_count("particles", particles)
    every = _Population(chain, xt, aim, size)
    done = every.run(None)
    for record, x in enumerate(done.x0.reshape(-1, size, done.x0.shape[-1])):
        every.level[record] = aim.strength * every.reward(record, x).cpu()
    return every.pick(done, every.level.argmax(1))
