"""Noise schedules: how much of a sequence is still visible at time t in [0, 1].

    q(xt | x0) = Cat(alpha(t) x0 + (1 - alpha(t)) mask)        at every position by itself

    alpha(t)    probability that a token is still visible; it falls strictly with t
    masked(t)   1 - alpha(t), without cancellation near t = 0
    sigma(t)    -ln alpha(t), the total noise; rate(t) is its derivative
    weight(t)   -alpha'(t) / (1 - alpha(t)) = sigma'(t) / (e^sigma(t) - 1), the weight of the
                cross-entropy at time t in the continuous-time bound of MDLM

The bound of a denoiser that ignores time does not depend on the schedule. The variance of its
estimate depends on it, and so does the distribution of samples drawn in few steps. Two different
functions are called "cosine" in the literature; here each has its own name.

A new schedule is one frozen dataclass, registered by its decorator. The tests cover it by iterating
`SCHEDULES`. Source: Sahoo et al. 2024, arXiv 2406.07524.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float
from torch import Tensor

from genodiff.diffusion.registries import SCHEDULES as SCHEDULES
from genodiff.errors import UsageError
from genodiff.registry import refuse_unknown

Time = Float[Tensor, "*T"]


class Schedule(ABC):
    """A noise schedule: alpha(t) and the functions derived from it.

    Every method works elementwise on a floating-point tensor of any shape.
    """

    @abstractmethod
    def alpha(self, t: Time) -> Time:
        """The probability, in [0, 1], that a token is still visible at time t."""

    @abstractmethod
    def masked(self, t: Time) -> Time:
        """1 - alpha(t), accurate also for tiny values."""

    @abstractmethod
    def dalpha(self, t: Time) -> Time:
        """The derivative alpha'(t), never positive."""

    @abstractmethod
    def inverse(self, alpha: Time) -> Time:
        """The time at which alpha(t) = `alpha`."""

    def sigma(self, t: Time) -> Time:
        """The total noise -ln alpha(t); infinite where nothing is visible."""
        masked = self.masked(t)
        return torch.where(masked < 0.5, -torch.log1p(-masked), -torch.log(self.alpha(t)))

    def rate(self, t: Time) -> Time:
        """The derivative of sigma, -alpha'(t) / alpha(t)."""
        return -self.dalpha(t) / self.alpha(t)

    def weight(self, t: Time) -> Time:
        """-alpha'(t) / (1 - alpha(t)); infinite or NaN at t = 0 if alpha(0) = 1."""
        return -self.dalpha(t) / self.masked(t)


@dataclass(frozen=True)
class _Shape(Schedule):
    """alpha = eps + (1 - eps) visible(t), where visible falls from 1 to 0; hidden = 1 - visible.

    `eps` is alpha(1), in [0, 1). Above 0, some tokens are still visible at t = 1, and the bound
    needs a prior term. Use 0 for a likelihood; MDLM's code uses 1e-3.
    """

    eps: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.eps < 1:
            fix = "use 0, or a small number such as 1e-3"
            raise UsageError(f"eps = {self.eps} is not in [0, 1)", fix=fix)

    def _visible(self, t: Time) -> Time:
        return 1 - self._hidden(t)

    @abstractmethod
    def _hidden(self, t: Time) -> Time: ...

    @abstractmethod
    def _slope(self, t: Time) -> Time:
        """The derivative of hidden(t)."""

    @abstractmethod
    def _time(self, visible: Time) -> Time: ...

    def alpha(self, t: Time) -> Time:
        return self.eps + (1 - self.eps) * self._visible(t)

    def masked(self, t: Time) -> Time:
        return (1 - self.eps) * self._hidden(t)

    def dalpha(self, t: Time) -> Time:
        return -(1 - self.eps) * self._slope(t)

    def inverse(self, alpha: Time) -> Time:
        return self._time(((alpha - self.eps) / (1 - self.eps)).clamp(0, 1))


@SCHEDULES.register("loglinear")
@SCHEDULES.register("linear")
@dataclass(frozen=True)
class Linear(_Shape):
    """alpha = 1 - t, sigma = -ln(1 - t), weight 1/t; called "log-linear" in SEDD and MDLM."""

    def _hidden(self, t: Time) -> Time:
        return t

    def _slope(self, t: Time) -> Time:
        return torch.ones_like(t)

    def _time(self, visible: Time) -> Time:
        return 1 - visible


@SCHEDULES.register("loglinear_eps")
@dataclass(frozen=True)
class LogLinear(Linear):
    """alpha = 1 - (1 - eps) t: `Linear` as in MDLM's code.

    With eps = 1e-3, one token in a thousand is never masked.
    """

    eps: float = 1e-3


@SCHEDULES.register("cosine")
@dataclass(frozen=True)
class Cosine(_Shape):
    """alpha = cos(pi t / 2): called "cosine" in MDLM's code."""

    def _visible(self, t: Time) -> Time:
        return torch.sin(math.pi / 2 * (1 - t))  # exactly 0 at t = 1; cos gives 6e-17

    def _hidden(self, t: Time) -> Time:
        return 2 * torch.sin(math.pi / 4 * t) ** 2

    def _slope(self, t: Time) -> Time:
        return math.pi / 2 * torch.sin(math.pi / 2 * t)

    def _time(self, visible: Time) -> Time:
        return 2 / math.pi * torch.acos(visible)


@SCHEDULES.register("one_minus_cosine")
@dataclass(frozen=True)
class OneMinusCosine(_Shape):
    """alpha = 1 - cos(pi (1 - t) / 2): called "cosine" in MD4 and Duo."""

    def _visible(self, t: Time) -> Time:
        return 1 - torch.cos(math.pi / 2 * (1 - t))

    def _hidden(self, t: Time) -> Time:
        return torch.sin(math.pi / 2 * t)

    def _slope(self, t: Time) -> Time:
        return math.pi / 2 * torch.sin(math.pi / 2 * (1 - t))

    def _time(self, visible: Time) -> Time:
        return 1 - 2 / math.pi * torch.acos(1 - visible)


@SCHEDULES.register("cosine_squared")
@dataclass(frozen=True)
class CosineSquared(_Shape):
    """alpha = cos(pi t / 2)^2."""

    def _visible(self, t: Time) -> Time:
        return torch.sin(math.pi / 2 * (1 - t)) ** 2

    def _hidden(self, t: Time) -> Time:
        return torch.sin(math.pi / 2 * t) ** 2

    def _slope(self, t: Time) -> Time:
        return math.pi / 2 * torch.sin(math.pi * t).clamp(min=0)

    def _time(self, visible: Time) -> Time:
        return 2 / math.pi * torch.acos(torch.sqrt(visible))


@SCHEDULES.register("polynomial")
@dataclass(frozen=True)
class Polynomial(_Shape):
    """alpha = 1 - t^power, with power above 0."""

    power: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.power > 0:
            fix = "use 1 for linear, 2 for quadratic"
            raise UsageError(f"power = {self.power} is not above 0", fix=fix)

    def _hidden(self, t: Time) -> Time:
        return t**self.power

    def _slope(self, t: Time) -> Time:
        return self.power * t ** (self.power - 1)

    def _time(self, visible: Time) -> Time:
        return (1 - visible) ** (1 / self.power)


@dataclass(frozen=True)
class _Noise(Schedule):
    """A schedule given by its total noise sigma(t), from `sigma_min` to `sigma_max`.

    alpha is e^-sigma. Some tokens stay visible at t = 1. Unless sigma_min = 0, some tokens are
    masked at t = 0 already, and the bound needs a reconstruction term.
    """

    sigma_min: float = 1e-4
    sigma_max: float = 20.0

    def __post_init__(self) -> None:
        if not 0 <= self.sigma_min < self.sigma_max < math.inf:
            what = f"sigma_min = {self.sigma_min} and sigma_max = {self.sigma_max} are not a range"
            raise UsageError(what, fix="use 0 <= sigma_min < sigma_max, both finite")

    def alpha(self, t: Time) -> Time:
        return torch.exp(-self.sigma(t))

    def masked(self, t: Time) -> Time:
        return -torch.expm1(-self.sigma(t))

    def dalpha(self, t: Time) -> Time:
        return -self.rate(t) * self.alpha(t)


@SCHEDULES.register("sigma_linear")
@dataclass(frozen=True)
class SigmaLinear(_Noise):
    """sigma = sigma_min + (sigma_max - sigma_min) t: called "linear" in MDLM's code."""

    def sigma(self, t: Time) -> Time:
        return self.sigma_min + (self.sigma_max - self.sigma_min) * t

    def rate(self, t: Time) -> Time:
        return torch.full_like(t, self.sigma_max - self.sigma_min)

    def inverse(self, alpha: Time) -> Time:
        share = (-torch.log(alpha) - self.sigma_min) / (self.sigma_max - self.sigma_min)
        return share.clamp(0, 1)


@SCHEDULES.register("geometric")
@dataclass(frozen=True)
class Geometric(_Noise):
    """sigma = sigma_min^(1-t) sigma_max^t, as in SEDD; sigma_min is above 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sigma_min == 0:
            what = "a geometric schedule cannot start at sigma_min = 0"
            raise UsageError(what, fix="use a small number such as 1e-4")

    def sigma(self, t: Time) -> Time:
        return self.sigma_min ** (1 - t) * self.sigma_max**t

    def rate(self, t: Time) -> Time:
        return self.sigma(t) * math.log(self.sigma_max / self.sigma_min)

    def inverse(self, alpha: Time) -> Time:
        ratio = torch.log(-torch.log(alpha) / self.sigma_min)
        return (ratio / math.log(self.sigma_max / self.sigma_min)).clamp(0, 1)


def schedule(name: str, **settings: float) -> Schedule:
    """The schedule `name` with `settings`. Raises `UsageError` for an unknown name or setting."""
    cls = SCHEDULES[name]
    refuse_unknown(f"schedule '{name}'", settings, [one.name for one in fields(cls)])  # type: ignore[arg-type]
    return cls(**settings)
