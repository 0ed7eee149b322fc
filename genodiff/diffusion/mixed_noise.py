"""Noise that is letters, masks, or both: a token is kept, or drawn anew from a fixed mixture.

    q(z_t | x) = alpha(t) x + (1 - alpha(t)) pi
    pi         the mask with chance s, else one of the K targets, each as likely: (1 - s) / K

A token that is drawn anew forgets what stood there, so q(z_t | z_s) is the same with alpha(t) /
alpha(s) in the place of alpha(t). s = 1 is masked diffusion, s = 0 uniform noise. Time runs back
through

    q(z_s = j | z_t = i, x)  ~  [a_ts 1(i = j) + (1 - a_ts) pi_i] q(z_s = j | x),
    a_ts = alpha(t) / alpha(s)

and a model puts its guess x_theta(z_t) in the place of x. That guess is of p(x_l | all of z_t but
z_l): summed over it, q(z_s | z_t, x) weighted by what z_l says of x is the line above with the
guess inside. So a perfect model that never reads the token it judges has the exact reverse law, and
nothing need be told of how much noise there is at a token: the process knows.

Sources: Schiff et al. 2024, arXiv 2412.10193 (UDLM); von Rütte et al. 2025, arXiv 2503.04482 (GIDD,
whose mixture moves with time; this one does not); Austin et al. 2021, arXiv 2107.03006.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from genodiff.diffusion.masked import MaskedDiffusion


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

    def log_pi(self, device: torch.device) -> Float[Tensor, " S"]:
        """log pi of each state."""
        letter, mask = (1 - self.mask_share) / self.size, self.mask_share
        logs = [math.log(p) if p > 0 else -math.inf for p in (letter, mask)]
        return torch.tensor([logs[0]] * self.size + [logs[1]], dtype=torch.float64, device=device)

    def tokens(self, x: Tensor) -> Int[Tensor, " S"]:
        """The token of each state, as x has them."""
        ids = [*self.diffusion.targets, self.diffusion.mask_id]
        return torch.tensor(ids, device=x.device, dtype=x.dtype)

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
        """z ~ q(z | x0) where `share` = 1 - alpha: drawn anew where u is below it, and by it."""
        noised = maskable & (u < share[:, None])
        drawn = self.draw_noise(x0, u / share[:, None].clamp(min=1e-300))
        return torch.where(noised, drawn, x0)

    def log_q(
        self, log_x: Float[Tensor, "*S K"], alpha: Float[Tensor, "*S"], share: Float[Tensor, "*S"]
    ) -> Float[Tensor, "*S N"]:
        """log q(z | x) of each state, x being a distribution over the targets; N = K + 1."""
        log_noise = torch.log(share)[..., None] + self.log_pi(log_x.device)
        letters = torch.logaddexp(torch.log(alpha)[..., None] + log_x, log_noise[..., :-1])
        return torch.cat([letters, log_noise[..., -1:].expand(*letters.shape[:-1], 1)], -1)

    def log_reverse(
        self,
        log_x: Float[Tensor, "*S K"],
        state: Int[Tensor, "*S"],
        share_t: float,
        share_s: float,
    ) -> Float[Tensor, "*S N"]:
        """log q(z_s | z_t = state, x), not normalised; shares are 1 - alpha, 0 <= s < t <= 1."""
        kept = (1 - share_t) / (1 - share_s)
        whole = torch.full(state.shape, 1.0, dtype=torch.float64, device=state.device)
        law = self.log_q(log_x, whole * (1 - share_s), whole * share_s)
        log_pi = self.log_pi(state.device)[state] + math.log(max(1 - kept, 1e-300))
        stays = torch.nn.functional.one_hot(state, self.size + 1).bool()
        log_kept = math.log(kept) if kept > 0 else -math.inf
        stay = torch.logaddexp(log_pi, torch.full_like(log_pi, log_kept))
        return law + torch.where(stays, stay[..., None], log_pi[..., None])
