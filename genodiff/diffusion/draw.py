"""A token from logits and one uniform, and whether rounding could have changed it.

All is computed in double precision.

Few tokens (`MANY` at most): the uniform is read off the cumulative distribution. Many: the largest
log-weight after Gumbel noise, -log(-log(U)) for a U of each token; the uniform is the key of the
stream of the Us. Both draw from the same law. With many tokens a cumulative distribution has a
boundary within rounding of nearly every uniform, whereas the two largest of a sum with noise are
seldom close.

In single precision the noise would be cut off at 16.6 (uniforms have 24 bits) and lower the
temperature of a large vocabulary: Zheng et al. 2024, arXiv 2409.02908. Here it reaches 36.7.

An error of at most d in every logit moves the log-odds of any set of tokens, and the difference of
any two, by at most 2 d / temperature: a draw that is nearer to a boundary is called close.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from genodiff.counter import Purpose, generator
from genodiff.diffusion.philox import philox_uniforms
from genodiff.errors import GenodiffError, UsageError

# Double-precision values closer than this are equal: symmetry makes exact ties, rounding splits
# them.
TIE = 1e-9
MANY = 32  # tokens


def make_gumbel_noise(u: Float[Tensor, " R"], n: int) -> Float[Tensor, "R n"]:
    """Standard Gumbel noise for `n` tokens of each row, a function of the row's uniform alone."""
    keys = (u.double() * 2.0**53).long()
    if u.device.type != "cpu":
        noise = philox_uniforms(keys, Purpose.SAMPLE_TOKEN, n, 1)
    else:
        noise = torch.empty(len(u), n, dtype=torch.float64)
        for row, key in zip(noise.numpy(), keys.tolist(), strict=True):
            generator(key, Purpose.SAMPLE_TOKEN, 0, 1).random(out=row)
    return -torch.log(-torch.log(noise))


class Draw:
    """Draws a token: temperature first, then the nucleus.

    The nucleus is the smallest set of tokens with a chance of at least `top_p`.
    """

    def __init__(self, temperature: float, top_p: float) -> None:
        if not 0 <= temperature < math.inf:
            raise UsageError(
                f"temperature {temperature}", fix="use 0 (always the best token) or more"
            )
        if not 0 < top_p <= 1:
            raise UsageError(
                f"top-p {top_p}", fix="use a number above 0 and at most 1 (1 keeps every token)"
            )
        self.temperature, self.top_p = temperature, top_p

    def __call__(
        self, logits: Float[Tensor, "R K"], u: Float[Tensor, " R"], tolerance: float
    ) -> tuple[Int[Tensor, " R"], Bool[Tensor, " R"]]:
        """The column drawn in each row, and whether the draw is close.

        It is close where errors of `tolerance` in the logits could change it.
        """
        lead = logits.double() - logits.double().amax(-1, keepdim=True)
        if lead.isnan().any():
            raise GenodiffError(
                "the denoiser gave no finite logits",
                fix="use a checkpoint from before the loss diverged",
            )
        if self.temperature > 0 and logits.shape[-1] > MANY:
            return self._draw_by_noise(lead / self.temperature, u, 2 * tolerance / self.temperature)
        scaled, slack, close = self._shape(lead, tolerance)
        cdf = scaled.softmax(-1).cumsum(-1)
        # Against the last column, which rounding may leave beside 1.
        token = (cdf[:, :-1] <= u.double()[:, None] * cdf[:, -1:]).sum(-1)
        if slack:
            close = close | (
                (_log_odds(scaled) - torch.logit(u.double())[:, None]).abs() <= slack
            ).any(-1)
        return token, close

    def log_law(self, logits: Float[Tensor, "R K"]) -> Float[Tensor, "R K"]:
        """The logarithm of each column's chance to be drawn."""
        return self.log_law_and_doubt(logits, 0.0)[0]

    def log_law_and_doubt(
        self, logits: Float[Tensor, "R K"], tolerance: float
    ) -> tuple[Float[Tensor, "R K"], Bool[Tensor, " R"]]:
        """`log_law`, and where errors of `tolerance` in the logits could let a column in or out."""
        lead = logits.double() - logits.double().amax(-1, keepdim=True)
        scaled, _, doubt = self._shape(lead, tolerance)
        return scaled.log_softmax(-1), doubt

    def _shape(
        self, lead: Float[Tensor, "R K"], tolerance: float
    ) -> tuple[Float[Tensor, "R K"], float, Bool[Tensor, " R"]]:
        """Log-weights by temperature and nucleus, by how much they may be off, and doubtful rows.

        A row is doubtful where errors of `tolerance` in the logits could change which columns have
        a chance.
        """
        if self.temperature == 0:
            # Uniform over the best tokens; the uniform then decides a tie, not rounding.
            scaled, slack = torch.zeros_like(lead).masked_fill(lead < -TIE, -torch.inf), 0.0
            doubt = (lead >= -2 * tolerance).sum(-1) > 1
        else:
            scaled, slack = lead / self.temperature, 2 * tolerance / self.temperature
            doubt = torch.zeros_like(lead[..., 0], dtype=torch.bool)
        if self.top_p < 1:
            keep, edge = self._nucleus(scaled, slack)
            scaled, doubt = scaled.masked_fill(~keep, -torch.inf), doubt | edge
        return scaled, slack, doubt

    def _draw_by_noise(
        self, scaled: Float[Tensor, "R K"], u: Float[Tensor, " R"], slack: float
    ) -> tuple[Int[Tensor, " R"], Bool[Tensor, " R"]]:
        """The largest sum of log-weight and Gumbel noise, and whether the draw is close.

        It is close where the first two are, or where the nucleus decides.
        """
        loud = scaled + make_gumbel_noise(u, scaled.shape[-1])
        sure = maybe = torch.ones_like(scaled, dtype=torch.bool)
        if self.top_p < 1:
            sure, maybe = self._bound_nucleus(scaled, slack)
        best = loud.masked_fill(~maybe, -torch.inf).topk(2)
        token, lead = best.indices[:, 0], best.values[:, 0] - best.values[:, 1]
        close = (lead <= slack) | ~sure.gather(-1, token[:, None])[:, 0]
        return token, close if slack else torch.zeros_like(close)

    def _bound_nucleus(
        self, scaled: Float[Tensor, "R K"], slack: float
    ) -> tuple[Bool[Tensor, "R K"], Bool[Tensor, "R K"]]:
        """The tokens that are surely in the nucleus, and those that may be.

        The former cannot be put out of it by a shift of `slack`, the latter could be let in by one.
        """
        keep, _ = self._nucleus(scaled, 0.0)
        if not slack:
            return keep, keep
        ranked = scaled.sort(-1, descending=True).values.contiguous()
        p = scaled.softmax(-1)
        # The chance of the first 0, 1, ... tokens.
        mass = torch.cat([torch.zeros_like(p[:, :1]), ranked.softmax(-1).cumsum(-1)], -1)
        # How many tokens stand before each: at least those larger by more than `slack`, at most
        # all that are not smaller by more than `slack`, itself left out.
        larger = torch.searchsorted(-ranked, -(scaled + slack), right=False)
        not_smaller = torch.searchsorted(-ranked, -(scaled - slack), right=True)
        least, most = mass.gather(-1, larger), mass.gather(-1, not_smaller) - p
        edge = math.log(self.top_p) - math.log1p(-self.top_p)
        # It may be the first, which is kept whatever its chance.
        first = scaled >= ranked[:, :1] - slack
        surely = torch.logit(most.clamp(0, 1)) + slack < edge
        return surely, first | (torch.logit(least.clamp(0, 1)) - slack < edge)

    def _nucleus(
        self, scaled: Float[Tensor, "R K"], slack: float
    ) -> tuple[Bool[Tensor, "R K"], Bool[Tensor, " R"]]:
        """The nucleus, and whether a shift of `slack` in log-odds could change it.

        The token that crosses `top_p` is in it.
        """
        # Rounded, so that tied tokens stay in the order of their ids.
        order = torch.round(scaled / TIE).argsort(dim=-1, descending=True, stable=True)
        ranked = scaled.gather(-1, order)
        p = ranked.softmax(-1)
        before = p.cumsum(-1) - p
        kept = before < self.top_p - TIE
        kept[:, 0] = True
        keep = torch.zeros_like(kept).scatter(-1, order, kept)
        if not slack:
            return keep, torch.zeros_like(kept[:, 0])
        edge = math.log(self.top_p) - math.log1p(-self.top_p)
        doubt = ((_log_odds(ranked) - edge).abs() <= slack).any(-1)
        # Errors may also swap the last token that is kept with the first that is not.
        last_kept = scaled.masked_fill(~keep, torch.inf).amin(-1)
        first_dropped = scaled.masked_fill(keep, -torch.inf).amax(-1)
        return keep, doubt | (last_kept - first_dropped <= slack)


def _log_odds(weights: Float[Tensor, "R K"]) -> Float[Tensor, "R J"]:
    """Of the first 1 .. K - 1 columns of each row against its other columns, from log-weights."""
    return weights[:, :-1].logcumsumexp(-1) - weights[:, 1:].flip(-1).logcumsumexp(-1).flip(-1)
