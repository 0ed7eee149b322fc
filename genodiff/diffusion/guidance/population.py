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
    Potential,
    check_count,
    draw_completions,
    guidance,
    make_potential,
    no_estimate,
    run_plain,
)
from genodiff.diffusion.sampler import Filling, JointDraw, Sampled
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


class _Population:
    """Particles of records, in groups of `size` rows, and their weights."""

    tilts = False

    def __init__(
        self, potential: Potential, records: int, size: int, drawn: int, order: Tensor
    ) -> None:
        self.potential, self.size, self.drawn, self.order = potential, size, drawn, order
        self.level = torch.zeros(records, size, dtype=torch.float64)  # log psi now
        self.log_weight = torch.zeros(records, size, dtype=torch.float64)
        self.log_z = torch.zeros(records, dtype=torch.float64)

    def tilt(self, *given: object) -> None:
        """Draws are the network's own."""

    def move(self, filling: Filling, rows: Tensor, logits: Tensor, sigma: Tensor) -> None:
        """Weigh the particles that have changed; then those of a record may change places."""
        drawn = draw_completions(filling, rows, logits, sigma, self.drawn)
        groups: dict[int, list[int]] = {}
        for a, record in enumerate((rows // self.size).tolist()):
            groups.setdefault(record, []).append(a)
        for record, mine in groups.items():
            here = rows[mine]
            # One call of the reward for all particles of the record.
            now = self.potential(record, filling.x[here], drawn[mine]).cpu()
            place = (here % self.size).cpu()
            self.log_weight[record, place] += now - self.level[record, place]
            self.level[record, place] = now
            self.select(filling, record)

    def copy(self, filling: Filling, record: int, chosen: Int[Tensor, " N"]) -> None:
        """Particle i of the record becomes a copy of particle `chosen[i]`."""
        group = slice(record * self.size, (record + 1) * self.size)
        filling.x[group] = filling.x[group][chosen]
        self.level[record] = self.level[record][chosen]

    def uniform(self, filling: Filling, record: int, number: int) -> float:
        """A uniform of the record, numbered by its evaluations."""
        done = int(filling.nfe[record * self.size : (record + 1) * self.size].sum())
        return float(draw_again(self.order[record], number + done))

    def select(self, filling: Filling, record: int) -> None:
        """Nothing: the particles go on as they are."""


class _Weighted(_Population):
    """Drawn anew by weight where too few particles carry it."""

    threshold = 0.5

    def select(self, filling: Filling, record: int) -> None:
        """Systematic resampling at a small effective sample size."""
        log_weight = self.log_weight[record]
        weight = log_weight.softmax(0)
        if 1 / float((weight**2).sum()) > self.threshold * self.size:
            return
        self.log_z[record] += log_weight.logsumexp(0) - math.log(self.size)
        self.log_weight[record] = 0.0
        self.copy(filling, record, resample(weight, self.uniform(filling, record, _RESAMPLE)))


class _Beam(_Population):
    """The best `width` go on, each as often as the others."""

    width = 1

    def select(self, filling: Filling, record: int) -> None:
        """Copies of the best by their potential; equal ones by their place."""
        best = self.level[record].argsort(descending=True, stable=True)[: self.width]
        chosen = best.repeat(self.size // self.width)
        self.copy(filling, record, chosen)


def _run(chain: GuidedChain, xt: Tensor, size: int, steer: _Population | None) -> Sampled:
    """The chain on `size` particles of each record, the first with the record's own uniforms."""
    u = chain.options.u_token.double()
    streams = [u, *(draw_again(u, _PARTICLE + i) for i in range(1, size))]
    joint = chain.options.joint
    return chain.run(
        xt.repeat_interleave(size, 0),
        u_order=chain.options.u_order.repeat_interleave(size, 0),
        u_token=torch.stack(streams, 1).reshape(-1, xt.shape[1]),
        steer=steer,
        joint=None if joint is None else _Together(joint, size),
    )


def _begin(
    chain: GuidedChain, xt: Tensor, aim: Aim
) -> tuple[Counted, Potential, Float[Tensor, " B"]]:
    assert aim.reward is not None
    reward = Counted(aim.reward, len(xt))
    potential = make_potential(reward, aim.strength, chain.diffusion.mask_id)
    # Any uniform of a record names it; that of its first position does.
    order = chain.options.u_order[:, :1].double().cpu().sum(1) % 1.0
    return reward, aim.potential or potential, order


def _score(reward: Counted, aim: Aim, done: Sampled, size: int) -> Float[Tensor, "B N"]:
    """beta r of all particles that are done."""
    groups = done.x0.reshape(-1, size, done.x0.shape[-1])
    found = [aim.strength * reward(i, x) for i, x in enumerate(groups)]
    return torch.stack(found).cpu() if found else torch.zeros(0, size, dtype=torch.float64)


def _pick(
    done: Sampled, size: int, chosen: Int[Tensor, " B"], calls: Tensor, log_z: Tensor
) -> Guided:
    rows = torch.arange(len(chosen)) * size + chosen
    nfe = done.nfe.reshape(-1, size).sum(1)
    return Guided(done.x0[rows.to(done.x0.device)], nfe, calls, log_z)


def _count_smc(
    masks: int,
    reveals: int,
    targets: int,
    particles: float = 16.0,
    drawn: float = 4.0,
    threshold: float = 0.5,
) -> int:
    size, several = check_count("particles", particles), check_count("drawn", drawn)
    return size * ((reveals - 1) * several + 1) if reveals else 0


def _count_beam(
    masks: int,
    reveals: int,
    targets: int,
    particles: float = 16.0,
    width: float = 4.0,
    drawn: float = 4.0,
) -> int:
    return _count_smc(masks, reveals, targets, particles, drawn)


@guidance(
    "smc", needs="reward", calls=_count_smc, particles=lambda particles=16.0, **rest: int(particles)
)
@torch.no_grad()
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
    if aim.strength == 0:
        return run_plain(chain, xt)
    reward, potential, order = _begin(chain, xt, aim)
    steer = _Weighted(potential, len(xt), size, count, order)
    steer.threshold = threshold
    done = _run(chain, xt, size, steer)
    # A record without masks was never weighed: it is what it is.
    weight = steer.log_weight
    edges = weight.softmax(1).cumsum(1)
    u = draw_again(order, _LAST)
    chosen = (edges[:, :-1] <= u[:, None] * edges[:, -1:]).sum(1)
    log_z = steer.log_z + weight.logsumexp(1) - math.log(size)
    return _pick(done, size, chosen, reward.calls, log_z)


@guidance(
    "beam",
    needs="reward",
    calls=_count_beam,
    particles=lambda particles=16.0, **rest: int(particles),
)
@torch.no_grad()
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
    if aim.strength == 0:
        return run_plain(chain, xt)
    reward, potential, order = _begin(chain, xt, aim)
    steer = _Beam(potential, len(xt), size, count, order)
    steer.width = kept
    done = _run(chain, xt, size, steer)
    return _pick(done, size, steer.level.argmax(1), reward.calls, no_estimate(len(xt)))


@guidance(
    "best-of-n",
    needs="reward",
    calls=lambda masks, reveals, targets, particles=16.0: check_count("particles", particles),
    particles=lambda particles=16.0, **rest: int(particles),
)
@torch.no_grad()
def best_of_n(
    chain: GuidedChain, xt: Int[Tensor, "B L"], aim: Aim, particles: float = 16.0
) -> Guided:
    """The best of `particles` unguided samples; the strength's sign says what is best."""
    size = check_count("particles", particles)
    if aim.strength == 0:
        return run_plain(chain, xt)
    reward, _, _ = _begin(chain, xt, aim)
    done = _run(chain, xt, size, None)
    scores = _score(reward, aim, done, size)
    return _pick(done, size, scores.argmax(1), reward.calls, no_estimate(len(xt)))
