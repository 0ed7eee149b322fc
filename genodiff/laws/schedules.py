"""The laws of a noise schedule: ends, slopes, derivatives, inverse, single precision."""

import torch

from genodiff.diffusion.schedule import SCHEDULES, Schedule
from genodiff.laws.law import demand

INSIDE = torch.linspace(0.001, 0.999, 401, dtype=torch.float64)


def check_schedule(given: str | Schedule) -> None:
    """Raises `BrokenLaw` for a schedule that breaks a law: a registered one, or one with settings.

    alpha falls, and masked = 1 - alpha. Derivatives are those of autograd, sigma = -log alpha, the
    weight is the same in sigma, and the inverse finds the time back.
    """
    noise = SCHEDULES[given]() if isinstance(given, str) else given
    name, t = f"the schedule {given}", INSIDE
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


def _close(a: torch.Tensor, b: torch.Tensor, rtol: float, atol: float, law: str) -> None:
    demand(torch.allclose(a, b, rtol=rtol, atol=atol), law)
