"""Masked diffusion: corruption, the denoiser's distribution (SUBS), the reverse kernel.

    x0, xt     clean tokens; tokens at time t, some of them masked
    corrupt    q(xt | x0): a position is masked with chance 1 - alpha(t)
    log_x0     log x_theta(xt), the denoiser's distribution over clean tokens ("SUBS"): at a masked
               position a log-softmax over the allowed targets, nothing else having a chance; at a
               visible position the token itself, for certain
    reverse    p(xs | xt), s < t: a masked position stays masked with chance (1 - alpha(s)) / (1 -
               alpha(t)), else it takes a token from x_theta; a visible one never changes

The paper is MDLM (Sahoo et al. 2024, arXiv 2406.07524, section 3). It forbids only the mask;
allowing only the targets tightens the bound and keeps special tokens out of samples.

The denoiser is any callable (xt, sigma) -> logits. Nothing here knows DNA, a network or a random
state: randomness comes in as uniforms, so the same uniforms give the same masks on every machine
and in any batch.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from genodiff.diffusion.schedule import Schedule
from genodiff.errors import UsageError
from genodiff.kernels.defaults import own_defaults


@dataclass(frozen=True)
class Clean:
    """Clean tokens and which of them count."""

    x0: Int[Tensor, "B L"]
    maskable: Bool[Tensor, "B L"]  # those that are masked, predicted and paid for
    weight: Float[Tensor, "B L"] | None = None  # of each position's loss; None: 1 everywhere
    lengths: Int[Tensor, " B"] | None = None  # where windows are padded on the right

    @property
    def n(self) -> Int[Tensor, " B"]:
        """How many tokens of each window are maskable."""
        return self.maskable.sum(-1)

    def logits(
        self,
        denoiser: Callable[..., Tensor],
        xt: Int[Tensor, "B L"],
        sigma: Float[Tensor, " B"],
        **more: Any,
    ) -> Float[Tensor, "*positions V"]:
        """Those of `denoiser` for xt; it is told the lengths only where there are any.

        `more` are arguments that not every denoiser takes, such as `rows`.
        """
        told = (xt, sigma) if self.lengths is None else (xt, sigma, self.lengths)
        return denoiser(*told, **more)


# (xt (B, L), sigma (B,)) -> logits (B, L, V). With ragged windows it is called as denoiser(xt,
# sigma, lengths).
Denoiser = Callable[..., Tensor]

LARGE = 1024
"""Targets from which on the head runs on the positions that matter; below, gathering them costs
more than it saves.

A denoiser that can do it says so (`selects_rows`): it takes `rows` (B, L), bool, and gives their
logits alone, (n, V).
"""

LARGEST_SIGMA = 20.0  # what a time-conditioned denoiser sees where alpha = 0; e^-20 = 2e-9


@runtime_checkable
class Decoder(Protocol):
    """A causal network that goes on from what it has read."""

    def cache(self, capacity: int) -> Any:
        """An empty cache of `capacity` positions."""

    def decode(self, x: Tensor, cache: Any) -> Tensor:
        """Logits (B, n, V) of what follows each position of x, which the cache then holds too."""


@dataclass(frozen=True)
class MaskedDiffusion:
    """The process: a schedule, the mask's id, and the ids that may be predicted and drawn.

    Without `time_conditioning` (the default) the denoiser is shown sigma = 0 at all times: its
    bound is then the same under every schedule, and it loses nothing (MDLM table 12).
    """

    schedule: Schedule
    mask_id: int
    targets: tuple[int, ...]
    time_conditioning: bool = False

    def __post_init__(self) -> None:
        if not self.targets or len({*self.targets, self.mask_id}) != len(self.targets) + 1:
            what = "the targets must be one or more distinct ids, none of them the mask's"
            raise UsageError(what)

    @cached_property
    def _consecutive(self) -> bool:
        return self.targets == tuple(range(self.targets[0], self.targets[0] + len(self.targets)))

    @cached_property
    def _tables(self) -> dict[torch.device, tuple[Tensor, Tensor]]:
        return {}

    def _on(self, device: torch.device) -> tuple[Int[Tensor, " K"], Int[Tensor, " M"]]:
        """The targets, and which target an id is, on a device.

        The latter is -1 for none, and its last entry stands for all larger ids. They are copied
        once, for a copy makes the host wait, and may be made in an evaluation and used in training.
        """
        if device not in self._tables:
            with torch.inference_mode(False), own_defaults():
                ids = torch.tensor(self.targets)
                column_of = torch.full((max(self.targets) + 2,), -1)
                column_of[ids] = torch.arange(len(ids))
                self._tables[device] = ids.to(device), column_of.to(device)
        return self._tables[device]

    def corrupt(
        self,
        x0: Int[Tensor, "B L"],
        t: Float[Tensor, " B"],
        u: Float[Tensor, "B L"],
        maskable: Bool[Tensor, "B L"],
    ) -> Int[Tensor, "B L"]:
        """xt ~ q(xt | x0): a maskable position is masked where u < 1 - alpha(t), u in [0, 1)."""
        return self.mask(x0, self.draw_mask(t, u, maskable))

    def draw_mask(
        self, t: Float[Tensor, " B"], u: Float[Tensor, "B L"], maskable: Bool[Tensor, "B L"]
    ) -> Bool[Tensor, "B L"]:
        """Which maskable positions are masked at time t; those at t' < t are among those at t."""
        return maskable & (u < self.schedule.masked(t)[:, None])

    def mask(self, x0: Int[Tensor, "B L"], masked: Bool[Tensor, "B L"]) -> Int[Tensor, "B L"]:
        """x0 with the mask's id at the `masked` positions."""
        return x0.masked_fill(masked, self.mask_id)

    def sigma(self, t: Float[Tensor, " B"]) -> Float[Tensor, " B"]:
        """What the denoiser is told of the time; 0 without time conditioning.

        It is sigma(t), at most `LARGEST_SIGMA`.
        """
        if not self.time_conditioning:
            return torch.zeros_like(t)
        return self.schedule.sigma(t).clamp(max=LARGEST_SIGMA)

    def reveal(self, t: Float[Tensor, " B"], s: Float[Tensor, " B"]) -> Float[Tensor, " B"]:
        """The chance to be visible at s if masked at t, 0 <= s < t <= 1.

        It is (alpha(s) - alpha(t)) / (1 - alpha(t)).
        """
        return 1 - self.schedule.masked(s) / self.schedule.masked(t)

    def target_logits(self, logits: Float[Tensor, "*S V"]) -> Float[Tensor, "*S K"]:
        """The targets' columns of the logits, in at least single precision."""
        if self._consecutive:
            columns = logits[..., self.targets[0] : self.targets[-1] + 1]
        else:
            columns = logits.index_select(-1, self._on(logits.device)[0])
        return columns if columns.dtype == torch.float64 else columns.float()

    def columns(self, x: Int[Tensor, "*S"]) -> Int[Tensor, "*S"]:
        """Which target each token is, by its number; -1 for none."""
        column_of = self._on(x.device)[1]
        return column_of[x.long().clamp(max=len(column_of) - 1)]

    def log_x0(
        self, logits: Float[Tensor, "B L V"], xt: Int[Tensor, "B L"]
    ) -> Float[Tensor, "B L V"]:
        """log x_theta(xt), natural logarithms, in at least single precision; every row sums to 1.

        -inf stands wherever the chance is 0: do not multiply it, gather from it or mask it. Logits
        of any finite size are safe. Every visible id must be below V; the mask's id need not be.
        """
        log_target = self.target_logits(logits).log_softmax(-1)
        impossible = torch.full_like(logits, -torch.inf, dtype=log_target.dtype)
        denoised = impossible.index_copy(-1, self._on(logits.device)[0], log_target)
        masked = (xt == self.mask_id)[..., None]
        visible = xt.masked_fill(masked[..., 0], 0).long()[..., None]
        return torch.where(masked, denoised, impossible.scatter(-1, visible, 0.0))

    @torch.inference_mode()
    def read_masks(
        self,
        denoiser: "Denoiser",
        ids: NDArray[np.integer[Any]],
        masked: NDArray[np.bool_],
        device: torch.device | str = "cpu",
    ) -> NDArray[np.float64]:
        """(M, K): log x_theta at the M `masked` places of windows (B, L) of ids, row after row.

        No more is computed than they need.
        """
        xt = torch.from_numpy(np.ascontiguousarray(ids).astype(np.int64)).to(device)
        at, logits_at = int(masked[0].argmax()), getattr(denoiser, "logits_at", None)
        if logits_at is not None and masked[:, at].all() and masked.sum() == len(masked):
            logits = logits_at(xt, at)
        else:
            # The network is told the noise of the time with this share of masks.
            visible = 1 - torch.from_numpy(masked.mean(1))
            sigma = self.sigma(self.schedule.inverse(visible)).to(device)
            rows = torch.from_numpy(masked).to(device)
            selects = getattr(denoiser, "selects_rows", False)
            logits = denoiser(xt, sigma, rows=rows) if selects else denoiser(xt, sigma)[rows]
        found: NDArray[np.float64] = (
            self.target_logits(logits).double().log_softmax(-1).cpu().numpy()
        )
        return found

    def nll(
        self, logits: Float[Tensor, "B L V"], x0: Int[Tensor, "B L"], masked: Bool[Tensor, "B L"]
    ) -> Float[Tensor, "B L"]:
        """-log x_theta of the clean token at the `masked` positions, 0 elsewhere; nats.

        Equals -log_x0 gathered at x0.

        A masked position whose clean token is not a target costs infinity, for the denoiser gives
        it no chance.
        """
        column = self.columns(x0.masked_fill(~masked, self.targets[0]))
        logp = self.target_logits(logits).log_softmax(-1)
        nll = -logp.gather(-1, column.clamp(min=0)[..., None])[..., 0]
        return torch.where(masked, nll.masked_fill(column < 0, torch.inf), 0.0)

    def reverse(
        self,
        logp: Float[Tensor, "B L V"],
        xt: Int[Tensor, "B L"],
        t: Float[Tensor, " B"],
        s: Float[Tensor, " B"],
    ) -> Float[Tensor, "B L V"]:
        """p(xs | xt) as probabilities, 0 <= s < t <= 1.

        logp is log_x0(logits, xt), and V exceeds the mask's id.
        """
        masked = xt == self.mask_id
        reveal = torch.where(masked, self.reveal(t, s)[:, None].to(logp.dtype), 1.0)
        p = logp.exp() * reveal[..., None]
        p[..., self.mask_id] = 1 - reveal
        return p


def exact_count_mask(
    maskable: Bool[Tensor, "B L"], k: Int[Tensor, " B"], u: Float[Tensor, "B L"]
) -> Bool[Tensor, "B L"]:
    """The k maskable positions of each row with the smallest uniforms; all where k is larger."""
    rank = u.masked_fill(~maskable, torch.inf).argsort(dim=-1, stable=True).argsort(-1)
    return maskable & (rank < k[:, None])


def times(
    method: Literal["iid", "stratified", "systematic"],
    u_own: Float[Tensor, " B"],
    u_shared: float | Float[Tensor, ""],
    slot: Int[Tensor, " B"],
    n_slots: int,
) -> Float[Tensor, " B"]:
    """A time in (0, 1] for each sample; each is uniform by itself, whatever the method.

    iid         every sample its own uniform
    stratified  one sample in each of `n_slots` equal strata, anywhere within it
    (MDLM's "antithetic")
    systematic  the same place in every stratum
    (VDM, MD4)

    `slot` numbers the samples of the global batch (or of a whole evaluation) 0 .. n_slots - 1, best
    in random order. The shared uniform turns the strata around the circle, so that no sample is
    tied to one part of [0, 1].
    """
    if method == "iid":
        turn = u_own
    elif method == "stratified":
        turn = (slot + u_own) / n_slots + u_shared
    elif method == "systematic":
        turn = slot.to(u_own.dtype) / n_slots + u_shared
    else:
        raise UsageError(f"no time sampling '{method}'", fix="known: iid, stratified, systematic")
    t = turn % 1
    return torch.where(t == 0, 1.0, t)


def bell(
    t: Float[Tensor, " B"], center: float, width: float
) -> tuple[Float[Tensor, " B"], Float[Tensor, " B"]]:
    """Times with a bell-shaped density, from uniform ones: the quantile function, and 1 / density.

    The logit of a time is normal around the logit of `center` with standard deviation `width`
    (Hong et al. 2026, arXiv 2605.13026: few very low and very high mask rates). Monotone, so a
    systematic set of times stays one. The mean of f(time) / density is that of f over (0, 1].
    """
    z = torch.special.ndtri(t.double().clamp(1e-9, 1 - 1e-9))
    times = torch.sigmoid(math.log(center / (1 - center)) + width * z)
    log_density = -0.5 * (z**2 + math.log(2 * math.pi)) - torch.log(width * times * (1 - times))
    return times.to(t.dtype), (-log_density).exp().to(t.dtype)


def counts(t: Float[Tensor, " B"], n_maskable: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
    """How many of n positions to mask: uniform on 1 .. n for t uniform on (0, 1]; 0 for n = 0."""
    return torch.minimum(torch.ceil(t * n_maskable).long(), n_maskable.long())
