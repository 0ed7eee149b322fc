"""The selective scan in pure torch, block by block in time, with its own backward: what runs where no compiled kernel does.

Notation as in `naive.py`. In a block of T steps everything but the recurrence is one operation over (T, b, N, E), channels
innermost, into reused buffers; the recurrence is one fused multiply-add per step, in place. The inputs and the state before
each block are kept; the backward pass recomputes a block's decays a_t = exp(dt_t A) and states h_t, then runs

    g_t = C_t ∂y_t + a_{t+1} g_{t+1}    w_t = g_t a_t h_{t-1}    ∂A = Σ_t w_t dt_t    ∂dt_t = Σ_n w_t A + u_t Σ_n g_t B_t
    ∂C_t = Σ_e h_t ∂y_t                 ∂B_t = Σ_e g_t dt_t u_t  ∂u_t = dt_t Σ_n g_t B_t + D ∂y_t

Nothing is divided by a cumulative product, so that decays may underflow. Decays are 2^(dt A log₂e): exp2 is three times faster
than exp on a CPU.
"""

from collections.abc import Iterator
from functools import cache
from math import log2, prod
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

_STEPS = 32  # least steps in a block: N/32 floats are saved per channel and token
_NUMBERS = 2**18  # numbers in a buffer, where the shape allows
_LOG2_E = log2(2.718281828459045)


class _Block(NamedTuple):
    """Rows and times that are worked on together, and the block's number in time."""

    rows: slice
    span: slice
    number: int


class _Plan:
    """How (B, L, E) × N is cut into blocks, and the buffers that all blocks share."""

    def __init__(self, u: Tensor, n: int, reverse: bool, buffers: int) -> None:
        batch, length, channels = u.shape
        step = n * channels
        self.steps = min(max(_STEPS, _NUMBERS // max(batch * step, 1)), max(length, 1))
        rows = min(max(1, _NUMBERS // (self.steps * step)), batch)
        spans = [slice(t, min(t + self.steps, length)) for t in range(0, length, self.steps)]
        self.n_spans, self.reverse = len(spans), reverse
        order = list(enumerate(spans))[:: -1 if reverse else 1]
        self.rows = [slice(b, min(b + rows, batch)) for b in range(0, batch, rows)]
        self.order = order
        self.buffers = [u.new_empty(self.steps * rows * step) for _ in range(buffers)]
        self.shape = (n, channels)

    def blocks(self, rows: slice, backward: bool = False) -> Iterator[_Block]:
        for number, span in self.order[::-1] if backward else self.order:
            yield _Block(rows, span, number)

    def views(self, block: _Block) -> list[Tensor]:
        """The buffers as (T, b, N, E)."""
        shape = (block.span.stop - block.span.start, block.rows.stop - block.rows.start, *self.shape)
        return [buffer[: prod(shape)].view(shape) for buffer in self.buffers]


def _recur(x: tuple[Tensor, ...], a: tuple[Tensor, ...], before: tuple[Tensor, ...]) -> None:
    """x_i += a_i before_i, strictly in order, for `before` may hold tensors of x."""
    if x and x[0].device.type == "cpu" and _foreach_is_in_order():
        torch._foreach_addcmul_(x, a, before)
    else:
        for x_t, a_t, before_t in zip(x, a, before, strict=True):
            x_t.addcmul_(a_t, before_t)


@cache
def _foreach_is_in_order() -> bool:
    """Whether torch's addcmul over a list runs one tensor after the other on this CPU, as it does up to now."""
    x = torch.ones(9, 4)
    torch._foreach_addcmul_(x[1:].unbind(0), torch.full((8, 4), 2.0).unbind(0), x[:-1].unbind(0))
    return x[:, 0].tolist() == [2.0 ** (t + 1) - 1 for t in range(9)]


def _time_first(x: Tensor, block: _Block) -> Tensor:
    """The block of a (B, L, ·) tensor as (T, b, ·)."""
    return x[block.rows, block.span].transpose(0, 1)


class _Work:
    """One block's step sizes, decays and states."""

    def __init__(
        self, plan: _Plan, block: _Block, u: Tensor, delta: Tensor, A2: Tensor, B: Tensor, bias: Tensor | None,
        softplus: bool, h: Tensor,
    ) -> None:  # fmt: skip
        self.a, self.states, *self.spare = plan.views(block)
        self.u, self.B = _time_first(u, block), _time_first(B, block)
        raw = _time_first(delta, block)
        self.raw = raw if bias is None else raw + bias
        self.dt = F.softplus(self.raw) if softplus else self.raw
        self.x = self.dt * self.u
        torch.exp2(torch.mul(self.dt.unsqueeze(2), A2, out=self.a), out=self.a)
        torch.mul(self.x.unsqueeze(2), self.B.unsqueeze(3), out=self.states)
        a, x = self.a.unbind(0), self.states.unbind(0)
        if plan.reverse:
            a, x = a[::-1], x[::-1]
        _recur(x, a, (h, *x[:-1]))
        self.last = x[-1]

    def output(self, C: Tensor, D: Tensor | None) -> Tensor:
        y = _by_state(C, self.states)
        return y if D is None else torch.addcmul(y, self.u, D)


def _by_state(x: Tensor, y: Tensor) -> Tensor:
    """Σ_n x_n y_ne: (T, b, N) and (T, b, N, E) → (T, b, E)."""
    steps, rows, n, channels = y.shape
    return torch.bmm(x.reshape(steps * rows, 1, n), y.view(steps * rows, n, channels)).view(steps, rows, channels)


def _by_channel(x: Tensor, y: Tensor) -> Tensor:
    """Σ_e x_e y_ne: (T, b, E) and (T, b, N, E) → (T, b, N)."""
    steps, rows, n, channels = y.shape
    y = y.view(steps * rows, n, channels).transpose(1, 2)
    return torch.bmm(x.reshape(steps * rows, 1, channels), y).view(steps, rows, n)


def _forward(
    u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor | None, z: Tensor | None,
    bias: Tensor | None, softplus: bool, reverse: bool, h0: Tensor | None, keep: bool,
) -> tuple[Tensor, Tensor, Tensor | None]:  # fmt: skip
    """Outputs, the last state (B, N, E), and with `keep` the state before each block (B, blocks, N, E)."""
    plan = _Plan(u, A.shape[1], reverse, 2)
    A2 = (A.t() * _LOG2_E).contiguous()
    state = u.new_zeros(u.shape[0], *A2.shape) if h0 is None else h0.transpose(1, 2).contiguous()
    saved = u.new_empty(u.shape[0], plan.n_spans, *A2.shape) if keep else None
    y = torch.empty_like(u, memory_format=torch.contiguous_format)
    for rows in plan.rows:
        h = state[rows]
        for block in plan.blocks(rows):
            if saved is not None:
                saved[rows, block.number] = h
            work = _Work(plan, block, u, delta, A2, B, bias, softplus, h)
            out = work.output(_time_first(C, block), D)
            _time_first(y, block).copy_(out if z is None else out * F.silu(_time_first(z, block)))
            h.copy_(work.last)
    return y, state, saved


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor | None, z: Tensor | None,
        bias: Tensor | None, softplus: bool, reverse: bool, h0: Tensor | None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        y, state, saved = _forward(u, delta, A, B, C, D, z, bias, softplus, reverse, h0, keep=True)
        ctx.save_for_backward(u, delta, A, B, C, D, z, bias, saved)
        ctx.softplus, ctx.reverse, ctx.has_h0 = softplus, reverse, h0 is not None
        return y, state.transpose(1, 2).contiguous()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor, g_state: Tensor) -> tuple[Tensor | None, ...]:
        u, delta, A, B, C, D, z, bias, saved = ctx.saved_tensors
        plan = _Plan(u, A.shape[1], ctx.reverse, 3)
        At = A.t().contiguous()
        A2 = At * _LOG2_E
        dA, dD = torch.zeros_like(At), None if D is None else torch.zeros_like(D)
        du, ddelta, dB, dC = (torch.empty_like(x) for x in (u, delta, B, C))
        dz = None if z is None else torch.empty_like(z)
        carry = g_state.transpose(1, 2).contiguous()  # a_{t+1} g_{t+1} of the block after
        ones = u.new_ones(1, plan.buffers[0].numel() // A.numel() if A.numel() else 0)
        for rows in plan.rows:
            for block in plan.blocks(rows, backward=True):
                work = _Work(plan, block, u, delta, A2, B, bias, ctx.softplus, saved[rows, block.number])
                g, C_, gy_ = work.spare[0], _time_first(C, block), _time_first(gy, block)
                if z is not None:
                    z_ = _time_first(z, block)
                    gate = torch.sigmoid(z_)
                    _time_first(dz, block).copy_(work.output(C_, D) * gy_ * gate * (1 + z_ * (1 - gate)))  # type: ignore[arg-type]
                    gy_ = gy_ * z_ * gate
                torch.mul(gy_.unsqueeze(2), C_.unsqueeze(3), out=g)
                gs, a, h = g.unbind(0), work.a.unbind(0), work.states.unbind(0)
                if ctx.reverse:
                    gs, a = gs[::-1], a[::-1]
                gs[-1].add_(carry[rows])
                _recur(gs[-2::-1], a[:0:-1], gs[:0:-1])
                torch.mul(a[0], gs[0], out=carry[rows])
                _time_first(dC, block).copy_(_by_channel(gy_, work.states))
                _time_first(dB, block).copy_(_by_channel(work.x, g))
                w = work.a.mul_(g)
                first = saved[rows, block.number]
                if ctx.reverse:
                    w[:-1].mul_(work.states[1:])
                    w[-1].mul_(first)
                else:
                    w[1:].mul_(work.states[:-1])
                    w[0].mul_(first)
                product = work.states
                torch.mul(w, work.dt.unsqueeze(2), out=product)
                moments = product.numel() // A.numel() if A.numel() else 0
                dA.view(1, -1).addmm_(ones[:, :moments], product.view(moments, -1))
                dt_grad = torch.mul(w, At, out=product).sum(2)
                dx = _by_state(work.B, g)
                dt_grad.addcmul_(dx, work.u)
                if ctx.softplus:
                    dt_grad.mul_(torch.sigmoid(work.raw))
                _time_first(ddelta, block).copy_(dt_grad)
                dx.mul_(work.dt)
                if D is not None and dD is not None:
                    dx.addcmul_(gy_, D)
                    dD += (gy_ * work.u).sum((0, 1))
                _time_first(du, block).copy_(dx)
        dbias = None if bias is None else ddelta.sum((0, 1))
        dh0 = carry.transpose(1, 2) if ctx.has_h0 else None
        return du, ddelta, dA.t(), dB, dC, dD, dz, dbias, None, None, dh0


def chunked_scan(
    u: Float[Tensor, "B L E"],
    delta: Float[Tensor, "B L E"],
    A: Float[Tensor, "E N"],
    B: Float[Tensor, "B L N"],
    C: Float[Tensor, "B L N"],
    D: Float[Tensor, " E"] | None = None,
    z: Float[Tensor, "B L E"] | None = None,
    delta_bias: Float[Tensor, " E"] | None = None,
    delta_softplus: bool = False,
    reverse: bool = False,
    h0: Float[Tensor, "B E N"] | None = None,
) -> tuple[Float[Tensor, "B L E"], Float[Tensor, "B E N"]]:
    """As `naive_scan`: outputs y and the state after the last step. Where no gradient is asked for, nothing is saved."""
    inputs = (u, delta, A, B, C, D, z, delta_bias, h0)
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs):
        return _Scan.apply(u, delta, A, B, C, D, z, delta_bias, delta_softplus, reverse, h0)
    y, state, _ = _forward(u, delta, A, B, C, D, z, delta_bias, delta_softplus, reverse, h0, keep=False)
    return y, state.transpose(1, 2)
