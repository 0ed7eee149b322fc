"""The laws of a sampler, tried with a denoiser that looks at the whole sequence; and of a noise
schedule: ends, slopes, derivatives, inverse, single precision.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.sampler import SAMPLERS, Sampled, Sampler, SamplerOptions, revealed_share
from genodiff.diffusion.schedule import SCHEDULES, Cosine, Linear, Schedule
from genodiff.errors import GenodiffError, UsageError
from genodiff.laws.law import demand

MASK, TARGETS, KNOWN = 3, (7, 8, 9, 10), 8
_VOCABULARY = 12
_TIMES = torch.linspace(0.001, 0.999, 401, dtype=torch.float64)
_Denoiser = Callable[[Tensor, Tensor], Tensor]


def check_sampler(name: str) -> None:
    """Raises `BrokenLaw` for a sampler that breaks a law, `UsageError` where there is none.

    What is known stays, no mask is left, and only targets come out. A sequence has the same result
    whatever is drawn beside it. Where nothing is masked, the network is not asked; elsewhere it is
    asked as often as announced. Logits that are not finite end the drawing, and impossible settings
    are refused.
    """
    sampler = SAMPLERS[name]
    for steps, temperature, top_p in ((1, 1.0, 1.0), (4, 0.0, 1.0), (20, 0.7, 0.8)):
        _check_filling(name, sampler, steps, temperature, top_p)
    _check_counts(name, sampler)
    _check_refusals(name, sampler)


def _draw(
    sampler: Sampler, denoiser: _Denoiser, xt: Tensor, noise: Any = None, **more: Any
) -> Sampled:
    process = MaskedDiffusion(noise or Linear(), MASK, TARGETS)
    return sampler.draw(process, denoiser, xt, _make_options(xt.shape, **more))


def _make_options(shape: torch.Size, rows: Tensor | None = None, **more: Any) -> SamplerOptions:
    draw = torch.Generator().manual_seed(0)
    order, token = (torch.rand(shape, generator=draw, dtype=torch.float64) for _ in range(2))
    return SamplerOptions(order, token, **({"steps": 4} | more))


def make_denoiser(causal: bool, length: int = 12, size: float = 1.5) -> _Denoiser:
    """Logits of each position by all others, or with `causal` by those before it."""
    draw = torch.Generator().manual_seed(42)
    shape = 2, length, _VOCABULARY, _VOCABULARY
    own, other = size * torch.randn(shape, generator=draw, dtype=torch.float64)
    place = torch.arange(length, dtype=torch.float64)
    near = torch.exp(-(place[:, None] - place).abs())
    near = near.tril() if causal else near

    def denoiser(xt: Tensor, sigma: Tensor) -> Tensor:
        n = xt.shape[1]
        seen = torch.nn.functional.one_hot(xt, _VOCABULARY).double()
        return (
            torch.einsum("blv,lvw->blw", seen, own[:n])
            + torch.einsum("bmv,lm,mvw->blw", seen, near[:n, :n], other[:n])
            + sigma[:, None, None]
        )

    return denoiser


def _check_filling(
    name: str, sampler: Sampler, steps: int, temperature: float, top_p: float
) -> None:
    length, rows = 10, 6
    xt = torch.full((rows, length), MASK)
    xt[0, 3:6], xt[1, ::2], xt[2] = KNOWN, 7, 10
    before = xt.clone()
    options = _make_options(xt.shape, steps=steps, temperature=temperature, top_p=top_p)
    process, denoiser = MaskedDiffusion(Linear(), MASK, TARGETS), make_denoiser(_is_causal(sampler))
    done = sampler.draw(process, denoiser, xt, options)
    masked = before == MASK
    demand(torch.equal(xt, before), f"{name} leaves the sequences that it is given")
    demand(torch.equal(done.x0[~masked], xt[~masked]), f"{name}: what is known stays")
    found = torch.isin(done.x0[masked], torch.tensor(TARGETS)).all()
    demand(found, f"{name}: no mask is left, and only targets come out")
    some = masked.sum(-1)
    demand(((done.nfe > 0) == (some > 0)).all(), f"{name}: where nothing is masked, none is asked")
    most = some.clamp(max=steps) if sampler.uses_steps else some
    most = torch.where(some > 0, steps, 0) if sampler.remasks else most
    demand((done.nfe <= most).all(), f"{name}: no more evaluations than masks, or than steps")
    again = sampler.draw(process, denoiser, xt, options)
    demand(torch.equal(again.x0, done.x0), f"{name}: the same uniforms give the same sequences")
    for row in range(rows):
        of_row = slice(row, row + 1)
        one = replace(options, u_order=options.u_order[of_row], u_token=options.u_token[of_row])
        alone = sampler.draw(process, denoiser, xt[of_row], one)
        law = f"{name}: a sequence has the same result whatever is drawn beside it"
        demand(torch.equal(alone.x0[0], done.x0[row]), law)
        demand(alone.nfe[0] == done.nfe[row], law)


def _is_causal(sampler: Sampler) -> bool:
    return "causal" in sampler.fits


def _check_counts(name: str, sampler: Sampler) -> None:
    n, steps, gap = 1_000, 9, 10
    xt = torch.full((n, gap + 4), MASK)
    xt[:, gap:] = KNOWN
    for noise in (Linear(), Cosine()):
        done = _draw(sampler, _flat, xt, noise, steps=steps)
        announced = sampler.evaluations(gap, revealed_share(noise, steps))
        off = done.nfe.double().mean().item() - announced
        if "uniform" in sampler.fits:  # what is announced is the most
            demand(-steps < off <= 0, f"{name}: `evaluations` is the most that it takes")
            continue
        spread = done.nfe.double().std().item() / math.sqrt(n)
        law = f"{name}: `evaluations` is the mean over sequences ({off:+.3f} off)"
        demand(abs(off) < 4 * spread + 1e-9, law)


def _flat(xt: Tensor, sigma: Tensor) -> Tensor:
    return torch.zeros(*xt.shape, _VOCABULARY)


def _check_refusals(name: str, sampler: Sampler) -> None:
    def fail(xt: Tensor, sigma: Tensor) -> Tensor:
        raise AssertionError("evaluated")

    for shape in ((3, 5), (0, 5), (2, 0)):
        xt = torch.full(shape, KNOWN)
        done = _draw(sampler, fail, xt)
        law = f"{name}: where nothing is masked, the network is not asked"
        demand(torch.equal(done.x0, xt) and not done.nfe.any(), law)
    masked = torch.full((1, 3), MASK)
    try:
        _draw(sampler, lambda xt, sigma: _flat(xt, sigma) * math.nan, masked)
    except GenodiffError as fault:
        demand("finite" in str(fault), f"{name}: it says that logits are not finite")
    else:
        demand(False, f"{name}: logits that are not finite end the drawing")
    bad: list[dict[str, float]] = [{"temperature": -1.0}, {"temperature": math.inf}]
    bad += [{"top_p": 0.0}, {"top_p": 1.5}]
    for more in bad + [{"steps": 0}] * sampler.uses_steps:
        try:
            _draw(sampler, make_denoiser(_is_causal(sampler)), masked, **more)
        except UsageError:
            continue
        demand(False, f"{name}: {more} is refused")


def check_schedule(given: str | Schedule) -> None:
    """Raises `BrokenLaw` for a schedule that breaks a law: a registered one, or one with settings.

    alpha falls, and masked = 1 - alpha. Derivatives are those of autograd, sigma = -log alpha, the
    weight is the same in sigma, and the inverse finds the time back.
    """
    noise = SCHEDULES[given]() if isinstance(given, str) else given
    name, t = f"the schedule {given}", _TIMES
    alpha, masked, sigma = noise.alpha(t), noise.masked(t), noise.sigma(t)
    demand((alpha.diff() < 0).all() and (masked.diff() > 0).all(), f"{name}: alpha falls")
    _close(alpha + masked, torch.ones_like(t), 0, 1e-15, f"{name}: masked is 1 - alpha")
    at = t.clone().requires_grad_()
    (dalpha,) = torch.autograd.grad(noise.alpha(at).sum(), at)
    (dsigma,) = torch.autograd.grad(noise.sigma(at).sum(), at)
    _close(noise.dalpha(t), dalpha, 1e-9, 1e-12, f"{name}: dalpha is the derivative of alpha")
    _close(noise.rate(t), dsigma, 1e-9, 1e-12, f"{name}: rate is the derivative of sigma")
    _close(torch.exp(-sigma), alpha, 1e-9, 1e-15, f"{name}: sigma is -log alpha")
    weight = noise.rate(t) / torch.expm1(sigma)
    _close(noise.weight(t), weight, 1e-9, 1e-12, f"{name}: the weight is rate / expm1(sigma)")
    some = torch.linspace(0.02, 0.98, 97, dtype=torch.float64)  # alpha is flat at some ends
    law = f"{name}: the inverse finds the time back"
    _close(noise.inverse(noise.alpha(some)), some, 0, 1e-8, law)
    ends = torch.tensor([0.0, 1.0], dtype=torch.float64)
    law = f"{name}: the inverse of what alpha never reaches is the nearer end"
    _close(noise.inverse(ends), ends.flip(0), 0, 1e-9, law)
    low = torch.logspace(-4, -0.01, 200, dtype=torch.float64).float()
    demand(noise.weight(low).dtype == torch.float32, f"{name} keeps single precision")
    law = f"{name}: single precision loses nothing near time 0"
    _close(noise.weight(low).double(), noise.weight(low.double()), 1e-4, 1e-5, law)
    _close(noise.sigma(low).double(), noise.sigma(low.double()), 1e-4, 0, law)


def _close(a: Tensor, b: Tensor, rtol: float, atol: float, law: str) -> None:
    demand(torch.allclose(a, b, rtol=rtol, atol=atol), law)
