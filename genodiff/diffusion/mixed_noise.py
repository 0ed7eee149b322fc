"""Noise that is letters, masks, or both: a token is kept, or drawn anew from a fixed mixture.

    q(z_t | x) = k(t) x + (1 - k(t)) pi
    pi         the mask with chance s, else one of the K targets, each as likely: (1 - s) / K

A token that is drawn anew forgets what stood there, so q(z_t | z_s) is the same with k(t) / k(s) in
the place of k(t). s = 1 is masked diffusion, s = 0 uniform noise. How much is kept, k, follows the
schedule by information: at time t a token says alpha(t) ln K nats of a token of which nothing else
is known.

    KL(q(z_t | x) || mean over x of q(z_t | x)) = alpha(t) ln K

With masks alone k = alpha. So a network that knows nothing pays the same at all times under the
linear schedule, whatever the noise is; with k = 1 - t it would pay most of it in few of them, and
the loss would scatter. No bound depends on it.

Time runs back through

    q(z_s = j | z_t = i, x)  ~  [k_ts 1(i = j) + (1 - k_ts) pi_i] q(z_s = j | x),
    k_ts = k(t) / k(s)

and a model puts its guess x_theta(z_t) in the place of x. That guess is of p(x_l | all of z_t but
z_l): summed over it, q(z_s | z_t, x) weighted by what z_l says of x is the line above with the
guess inside. So a perfect model that never reads the token it judges has the exact reverse law, and
nothing need be told of how much noise there is at a token: the process knows.

Sources: Schiff et al. 2024, arXiv 2412.10193 (UDLM); von Rütte et al. 2025, arXiv 2503.04482 (GIDD,
whose mixture moves with time; this one does not); Austin et al. 2021, arXiv 2107.03006.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from genodiff.diffusion.masked import LARGEST_SIGMA, MaskedDiffusion

Floats = NDArray[np.float64]

LEAST = 1e-6  # k, where less is kept: the integrand has a limit at t = 1, and is written 0/0
_KNOTS = 1024  # of k by information; straight between them, which is as exact for a bound


class Noising(NamedTuple):
    """What samplers of networks of letters as noise begin with."""

    mask_share: float = 0.0  # of the noise that is masks
    start: float = 1.0  # the time, in (0, 1]: at 1 nothing is left of what stood there
    real: Int[Tensor, "B L"] | None = None  # what stands where there are masks; needed below 1


@dataclass(frozen=True)
class MixedNoise:
    """The process of `diffusion`'s schedule and tokens; `mask_share` is s.

    States are numbered: the K targets in their order, and K for the mask.
    """

    diffusion: MaskedDiffusion
    mask_share: float

    @property
    def size(self) -> int:
        """K: how many targets there are."""
        return len(self.diffusion.targets)

    def share(self, t: Float[Tensor, " B"]) -> tuple[Float[Tensor, " B"], Float[Tensor, " B"]]:
        """1 - k(t), the chance that a token is drawn anew, and its derivative."""
        schedule = self.diffusion.schedule
        hidden = schedule.masked(t.double()).clamp(0, 1) * _KNOTS
        knots = _find_tables(self, t.device)[0]
        cell = hidden.long().clamp(max=_KNOTS - 1)
        rise = knots[cell + 1] - knots[cell]
        return knots[cell] + (hidden - cell) * rise, -schedule.dalpha(t.double()) * rise * _KNOTS

    def sigma(self, share: Float[Tensor, " B"]) -> Float[Tensor, " B"]:
        """What the denoiser is told of the time: -ln k(t), or 0 without time conditioning."""
        if not self.diffusion.time_conditioning:
            return torch.zeros_like(share)
        return -torch.log1p(-share).clamp(min=-LARGEST_SIGMA)

    def log_pi(self, device: torch.device) -> Float[Tensor, " S"]:
        """log pi of each state."""
        return _find_tables(self, device)[1]

    def tokens(self, x: Tensor) -> Int[Tensor, " S"]:
        """The token of each state, as x has them."""
        return _find_tables(self, x.device)[2].to(x.dtype)

    def states(self, x: Int[Tensor, "*S"]) -> Int[Tensor, "*S"]:
        """The state of each token; -1 for one that is neither a target nor the mask."""
        columns = self.diffusion.columns(x)
        return torch.where(x == self.diffusion.mask_id, self.size, columns)

    def draw_noise(self, x: Int[Tensor, "*S"], u: Float[Tensor, "*S"]) -> Int[Tensor, "*S"]:
        """A token from pi for each uniform in [0, 1)."""
        s, n = self.mask_share, self.size
        letter = ((u - s) / max(1 - s, 1e-300) * n).long().clamp(0, n - 1)
        return self.tokens(x)[torch.where(u < s, n, letter)]

    def corrupt(
        self,
        x0: Int[Tensor, "B L"],
        share: Float[Tensor, " B"],
        u: Float[Tensor, "B L"],
        maskable: Bool[Tensor, "B L"],
    ) -> Int[Tensor, "B L"]:
        """z ~ q(z | x0) where `share` = 1 - k: drawn anew where u is below it, and by it."""
        noised = maskable & (u < share[:, None])
        drawn = self.draw_noise(x0, u / share[:, None].clamp(min=1e-300))
        return torch.where(noised, drawn, x0)

    def log_q(
        self, log_x: Float[Tensor, "*S K"], share: Float[Tensor, "*S"]
    ) -> Float[Tensor, "*S N"]:
        """log q(z | x) of each state, x being a distribution over the targets; N = K + 1."""
        log_noise = torch.log(share)[..., None] + self.log_pi(log_x.device)
        log_kept = torch.log1p(-share).clamp(min=math.log(LEAST))[..., None]
        letters = torch.logaddexp(log_kept + log_x, log_noise[..., :-1])
        return torch.cat([letters, log_noise[..., -1:].expand(*letters.shape[:-1], 1)], -1)

    def log_reverse(
        self, log_x: Float[Tensor, "*S K"], state: Int[Tensor, "*S"], share_t: float, share_s: float
    ) -> Float[Tensor, "*S N"]:
        """log q(z_s | z_t = state, x), not normalised; shares are 1 - k, of s below that of t."""
        kept = (1 - share_t) / (1 - share_s)
        law = self.log_q(log_x, torch.full_like(log_x[..., 0], share_s))
        log_pi = self.log_pi(state.device)[state] + math.log(max(1 - kept, 1e-300))
        stays = state[..., None] == torch.arange(self.size + 1, device=state.device)
        log_kept = math.log(kept) if kept > 0 else -math.inf
        stay = torch.logaddexp(log_pi, torch.full_like(log_pi, log_kept))
        return law + torch.where(stays, stay[..., None], log_pi[..., None])


def find_information(kept: Floats, size: int, mask_share: float) -> Floats:
    """Nats that z says of x where each of `size` targets is as likely and `kept` is k."""
    anew = (1 - kept) * (1 - mask_share) / size
    same, letters = kept + anew, 1 - (1 - kept) * mask_share
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = same * np.log(same * size / letters)
        wrong = np.where(anew > 0, anew * np.log(anew * size / letters), 0.0)
    return np.nan_to_num(found) + (size - 1) * wrong


@lru_cache(maxsize=64)
def _find_tables(
    noise: MixedNoise, device: torch.device
) -> tuple[Float[Tensor, " M"], Float[Tensor, " S"], Int[Tensor, " S"]]:
    """The knots of 1 - k, log pi and tokens, copied to a device once: a copy makes the host wait.

    Knots are where 0, 1/M, ..., 1 of the information is lost, by halving.
    """
    size, masks = noise.size, noise.mask_share
    wanted = math.log(size) * (1 - np.arange(_KNOTS + 1) / _KNOTS)
    low, high = np.zeros(_KNOTS + 1), np.ones(_KNOTS + 1)
    for _ in range(60):
        middle = (low + high) / 2
        more = find_information(middle, size, masks) > wanted
        low, high = np.where(more, low, middle), np.where(more, middle, high)
    share = 1 - (low + high) / 2
    share[0], share[-1] = 0.0, 1.0
    letter, mask = (math.log(p) if p > 0 else -math.inf for p in ((1 - masks) / size, masks))
    with torch.inference_mode(False):
        return (
            torch.from_numpy(share).to(device),
            torch.tensor([letter] * size + [mask], dtype=torch.float64).to(device),
            torch.tensor([*noise.diffusion.targets, noise.diffusion.mask_id]).to(device),
        )
