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

The generator of `counter.py` in torch: the same numbers, bit for bit, made where they are used.

Philox-4x64-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"), as numpy ships
it. A block of four 64-bit numbers is ten rounds of

    (c0, c1, c2, c3) <- (hi(M1 c2) ^ c1 ^ k0, lo(M1 c2), hi(M0 c0) ^ c3 ^ k1, lo(M0 c0))

over the counter c, with the key k growing between them. Arithmetic is modulo 2^64, which int64 is
too; only shifts and the upper halves of products need care.

More uniforms for a position, from its one: a stream that is keyed by the uniform itself.

A sampler gets two uniforms for each position. One that may draw a position again needs more. Each
is a hash of the position's uniform and of a number, so it depends on neither batch nor device.

Source of the hash: Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators"
(SplitMix64, the finaliser of David Stafford's variant 13).
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from genodiff.counter import Purpose, generator
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
            fix = "use 0 (always the best token) or more"
            raise UsageError(f"temperature {temperature}", fix=fix)
        if not 0 < top_p <= 1:
            fix = "use a number above 0 and at most 1 (1 keeps every token)"
            raise UsageError(f"top-p {top_p}", fix=fix)
        self.temperature, self.top_p = temperature, top_p

    def __call__(
        self, logits: Float[Tensor, "R K"], u: Float[Tensor, " R"], tolerance: float
    ) -> tuple[Int[Tensor, " R"], Bool[Tensor, " R"]]:
        """The column drawn in each row, and whether the draw is close.

        It is close where errors of `tolerance` in the logits could change it.
        """
        lead = logits.double() - logits.double().amax(-1, keepdim=True)
        if lead.isnan().any():
            what = "the denoiser gave no finite logits"
            raise GenodiffError(what, fix="use a checkpoint from before the loss diverged")
        if self.temperature > 0 and logits.shape[-1] > MANY:
            return self._draw_by_noise(lead / self.temperature, u, 2 * tolerance / self.temperature)
        scaled, slack, close = self._shape(lead, tolerance)
        cdf = scaled.softmax(-1).cumsum(-1)
        # Against the last column, which rounding may leave beside 1.
        token = (cdf[:, :-1] <= u.double()[:, None] * cdf[:, -1:]).sum(-1)
        if slack:
            gap = (_log_odds(scaled) - torch.logit(u.double())[:, None]).abs()
            close = close | (gap <= slack).any(-1)
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


_HALF = (1 << 32) - 1
_M0, _M1 = 0xD2E7470EE14C6C93, 0xCA5A826395121157
_GROWTH = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_ROUNDS = 10


def philox_uniforms(
    seeds: Int[Tensor, " R"], purpose: Purpose, n: int, sub_index: int = 0
) -> Float[Tensor, "R n"]:
    """Row i is `uniforms(seeds[i], purpose, 0, n, sub_index)`, on the device of the seeds."""
    # numpy counts before it draws: the first block is that of counter 1.
    block = torch.arange(1, -(-n // 4) + 1, device=seeds.device)
    key = [seeds[:, None].long(), torch.full_like(seeds, int(purpose))[:, None].long()]
    zero = torch.zeros_like(block * key[0])
    c = [block + zero, zero, zero + sub_index, zero]
    for i in range(_ROUNDS):
        if i:
            key = [k + _wrap(g) for k, g in zip(key, _GROWTH, strict=True)]
        (high0, low0), (high1, low1) = _multiply(_M0, c[0]), _multiply(_M1, c[2])
        c = [high1 ^ c[1] ^ key[0], low1, high0 ^ c[3] ^ key[1], low0]
    numbers = torch.stack(c, -1).flatten(1)[:, :n]
    return _shift(numbers, 11).double() * 2.0**-53


def _shift(x: Tensor, by: int) -> Tensor:
    """x >> by of unsigned numbers: torch shifts int64 with its sign."""
    return (x >> by) & ((1 << (64 - by)) - 1)


def _multiply(m: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """The upper and lower 64 bits of m x, from four products of halves."""
    m0, m1, x0, x1 = m & _HALF, m >> 32, x & _HALF, _shift(x, 32)
    low, cross, other = x0 * m0, x1 * m0, x0 * m1
    carried = _shift(low, 32) + (cross & _HALF) + (other & _HALF)
    high = x1 * m1 + _shift(cross, 32) + _shift(other, 32) + _shift(carried, 32)
    return high, x * _wrap(m)


_STEP = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def draw_again(u: Float[Tensor, "*S"], number: int | Tensor) -> Float[Tensor, "*S"]:
    """Uniforms in [0, 1) with 53 bits: those of `u` (in [0, 1)) for this `number` (0 or more).

    A tensor of numbers (int64) is one for each u.

    Numbers of one u, and the same number of two us, are independent for all that samplers do.
    """
    key = (u.double() * 2.0**53).long()
    # Two rounds: the keys of close uniforms and small numbers differ in few bits.
    if isinstance(number, Tensor):
        step: int | Tensor = (number + 1) * _wrap(_STEP)  # wraps, as the other does
    else:
        step = _wrap((number + 1) * _STEP)
    mixed = _mix(_mix(key + _wrap(_STEP)) + step)
    return _shift(mixed, 11).double() * 2.0**-53


def _mix(z: Tensor) -> Tensor:
    z = (z ^ _shift(z, 30)) * _wrap(_FIRST)
    z = (z ^ _shift(z, 27)) * _wrap(_SECOND)
    return z ^ _shift(z, 31)


def _wrap(value: int) -> int:
    """`value` modulo 2^64, as a signed 64-bit integer."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
