"""The selective scan in pure torch, block by block in time, with its own backward pass.

The notation is that of `naive.py`. In a block of T steps everything but the recurrence is one
operation over (T, b, N, E), with contiguous channels, into buffers that are used again. The
recurrence is one fused multiply-add a step, in place. The inputs and the state before each block
are kept. The backward pass computes a block's decays a_t = exp(dt_t A) and states h_t again, then

    g_t = C_t ∂y_t + a_{t+1} g_{t+1}    w_t = g_t a_t h_{t-1}    ∂A = Σ_t w_t dt_t
    ∂dt_t = Σ_n w_t A + u_t Σ_n g_t B_t
    ∂C_t = Σ_e h_t ∂y_t                 ∂B_t = Σ_e g_t dt_t u_t  ∂u_t = dt_t Σ_n g_t B_t + D ∂y_t

Nothing is divided by a cumulative product, so decays may underflow. They are computed as
2^(dt A log₂e): on a CPU exp2 is three times faster than exp.
"""

from collections.abc import Callable, Iterator
from functools import cache
from math import e, log2
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels.defaults import own_defaults
from genodiff.kernels.direction import ScanInputs, want_gradient
from genodiff.kernels.gemm import plain_matmul
from genodiff.kernels.parallel import map_parts

_STEPS = 32  # least steps in a block: N/32 floats are saved for each channel and token
_NUMBERS = 2**18  # numbers in a buffer, where the shape allows: three buffers stay in the cache


class _Block(NamedTuple):
    """Rows and times that are computed together, and the block's number in time."""

    rows: slice
    span: slice
    number: int


class _Buffers:
    """Decays a, states h and adjoints g of a block, (T, b, N, E), and lists of their steps.

    `states` has one step more than the others: the state before the block, at the end where the
    scan begins. `scan` and `adjoint` are lists in the order of the recurrences.
    """

    def __init__(
        self, like: Tensor, steps: int, rows: int, shape: torch.Size, reverse: bool, backward: bool
    ) -> None:
        self.a = like.new_empty(steps, rows, *shape)
        self.states = like.new_empty(steps + 1, rows, *shape)
        self.h, self.before = (
            (self.states[:-1], self.states[1:]) if reverse else (self.states[1:], self.states[:-1])
        )
        way = -1 if reverse else 1
        a, states = self.a.unbind(0)[::way], self.states.unbind(0)[::way]
        self.first, self.last = states[0], states[-1]
        self.scan = (states[1:], a, states[:-1])
        if backward:
            self.g = like.new_empty(steps, rows, *shape)
            g = self.g.unbind(0)[::way]
            self.a_first, self.g_first, self.g_last = a[0], g[0], g[-1]
            self.adjoint = (g[-2::-1], a[:0:-1], g[:0:-1])


class _Blocks:
    """How (B, L, E) × N is cut into blocks, and the buffers that blocks of one shape share."""

    def __init__(self, like: Tensor, n: int, reverse: bool, backward: bool) -> None:
        batch, length, channels = like.shape
        self.like, self.shape = like, torch.Size((n, channels))
        self.reverse, self.backward = reverse, backward
        state = max(n * channels, 1)
        steps = max(_STEPS, min(2 * _STEPS, _NUMBERS // state), _NUMBERS // (max(batch, 1) * state))
        steps = max(min(steps, length), 1)
        rows = max(min(_NUMBERS // (steps * state), batch), 1)
        self.rows = [slice(b, min(b + rows, batch)) for b in range(0, batch, rows)]
        self.spans = [slice(t, min(t + steps, length)) for t in range(0, length, steps)]

    def blocks(self, rows: slice) -> Iterator[_Block]:
        """The blocks of some rows, in the order of this pass."""
        order = list(enumerate(self.spans))
        for number, span in reversed(order) if self.reverse != self.backward else order:
            yield _Block(rows, span, number)

    def cutter(self) -> Callable[[_Block], _Buffers]:
        """A function from a block to its buffers, made once for each shape; one for each thread."""

        @cache
        def of_size(steps: int, rows: int) -> _Buffers:
            return _Buffers(self.like, steps, rows, self.shape, self.reverse, self.backward)

        return lambda block: of_size(
            block.span.stop - block.span.start, block.rows.stop - block.rows.start
        )


def _recur(x: tuple[Tensor, ...], a: tuple[Tensor, ...], before: tuple[Tensor, ...]) -> None:
    """x_i += a_i before_i, strictly in order: `before` holds tensors of x."""
    if x and x[0].device.type == "cpu" and _foreach_is_in_order():
        torch._foreach_addcmul_(x, a, before)
    else:
        for x_t, a_t, before_t in zip(x, a, before, strict=True):
            x_t.addcmul_(a_t, before_t)


@cache
@own_defaults()
def _foreach_is_in_order() -> bool:
    """Whether torch's addcmul over a list runs one tensor after the other on this CPU.

    It does in every torch so far, without a promise.
    """
    x = torch.ones(9, 4)
    torch._foreach_addcmul_(x[1:].unbind(0), torch.full((8, 4), 2.0).unbind(0), x[:-1].unbind(0))
    return x[:, 0].tolist() == [2.0 ** (t + 1) - 1 for t in range(9)]


def _time_first(x: Tensor, block: _Block) -> Tensor:
    """The block of a (B, L, ·) tensor as (T, b, ·)."""
    return x[block.rows, block.span].transpose(0, 1)


def _run(buffers: _Buffers, x: Tensor, dt: Tensor, B: Tensor, A2: Tensor) -> None:
    """Fill in a block's decays and states, from the state before it in `buffers.first`.

    A2 is A log₂e, (N, E).
    """
    torch.exp2(torch.mul(dt.unsqueeze(2), A2, out=buffers.a), out=buffers.a)
    torch.mul(x.unsqueeze(2), B.unsqueeze(3), out=buffers.h)
    _recur(*buffers.scan)


def _over_states(x: Tensor, y: Tensor) -> Tensor:
    """Σ_n x_n y_ne: (T, b, N) and (T, b, N, E) → (T, b, E)."""
    return torch.bmm(x.flatten(0, 1)[:, None], y.flatten(0, 1)).view(*y.shape[:2], y.shape[3])


def _over_channels(x: Tensor, y: Tensor) -> Tensor:
    """Σ_e x_e y_ne: (T, b, E) and (T, b, N, E) → (T, b, N)."""
    y_ = y.flatten(0, 1).transpose(1, 2)
    return torch.bmm(x.flatten(0, 1)[:, None], y_).view(*y.shape[:3])


@plain_matmul()
def _forward(
    inputs: ScanInputs, softplus: bool, reverse: bool, keep: bool
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Outputs and the last state (B, N, E).

    With `keep` also the step sizes and the state before each block, (B, blocks, N, E).
    """
    u, delta, A, B, C, D, bias, h0 = inputs
    plan = _Blocks(u, A.shape[1], reverse, backward=False)
    A2 = (A.t() * log2(e)).contiguous()
    h0 = u.new_zeros(u.shape[0], *A2.shape) if h0 is None else h0.transpose(1, 2)
    state = h0.clone(memory_format=torch.contiguous_format)
    y = torch.empty_like(u, memory_format=torch.contiguous_format)
    saved = u.new_empty(u.shape[0], len(plan.spans), *A2.shape) if keep else None
    dts = torch.empty_like(y) if keep else None

    def work(rows: slice) -> None:
        h, cut = state[rows], plan.cutter()
        for block in plan.blocks(rows):
            buffers = cut(block)
            raw, u_ = _time_first(delta, block), _time_first(u, block)
            dt = raw if bias is None else raw + bias
            if softplus:
                dt = F.softplus(dt)
            if saved is not None and dts is not None:
                saved[rows, block.number] = h
                _time_first(dts, block).copy_(dt)
            buffers.first.copy_(h)
            _run(buffers, dt * u_, dt, _time_first(B, block), A2)
            out = _over_states(_time_first(C, block), buffers.h)
            if D is not None:
                out.addcmul_(u_, D)
            _time_first(y, block).copy_(out)
            h = buffers.last
        state[rows] = h

    map_parts(work, plan.rows, u.device)
    return y, state, dts, saved


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, softplus: bool, reverse: bool, *inputs: Any) -> tuple[Tensor, Tensor]:
        x = ScanInputs(*inputs)
        y, state, dts, saved = _forward(x, softplus, reverse, keep=True)
        ctx.save_for_backward(x.u, dts, x.A, x.B, x.C, x.D, saved)
        ctx.softplus, ctx.reverse = softplus, reverse
        ctx.has_bias, ctx.has_h0 = x.bias is not None, x.h0 is not None
        return y, state.transpose(1, 2).contiguous()

    @staticmethod
    @once_differentiable
    @plain_matmul()
    def backward(ctx: Any, gy: Tensor, g_state: Tensor) -> tuple[Tensor | None, ...]:
        u, dts, A, B, C, D, saved = ctx.saved_tensors
        plan = _Blocks(u, A.shape[1], ctx.reverse, backward=True)
        At = A.t().contiguous()
        A2 = At * log2(e)
        du, ddt, dB, dC = (
            torch.empty_like(x, memory_format=torch.contiguous_format) for x in (u, dts, B, C)
        )
        # a_{t+1} g_{t+1} of the block after.
        carry = g_state.transpose(1, 2).clone(memory_format=torch.contiguous_format)

        def work(rows: slice) -> tuple[Tensor, Tensor]:
            dA, dD, cut = torch.zeros_like(At), At.new_zeros(At.shape[1]), plan.cutter()
            for block in plan.blocks(rows):
                buffers = cut(block)
                a, g = buffers.a, buffers.g
                u_, dt, B_, C_, gy_ = (_time_first(x, block) for x in (u, dts, B, C, gy))
                x = dt * u_
                buffers.first.copy_(saved[rows, block.number])
                _run(buffers, x, dt, B_, A2)
                torch.mul(gy_.unsqueeze(2), C_.unsqueeze(3), out=g)
                buffers.g_last.add_(carry[rows])
                _recur(*buffers.adjoint)
                _time_first(dC, block).copy_(_over_channels(gy_, buffers.h))
                _time_first(dB, block).copy_(_over_channels(x, g))
                torch.mul(buffers.a_first, buffers.g_first, out=carry[rows])
                dx = _over_states(B_, g)
                w = a.mul_(g).mul_(buffers.before)
                product = torch.mul(w, dt.unsqueeze(2), out=g)
                dA.view(1, -1).addmm_(
                    g.new_ones(1, g.shape[0] * g.shape[1]), product.view(-1, At.numel())
                )
                ddt_ = torch.mul(w, At, out=g).sum(2).addcmul_(dx, u_)
                if ctx.softplus:
                    ddt_.mul_(torch.expm1(-dt).neg_())  # softplus' slope in delta, 1 − exp(−dt)
                _time_first(ddt, block).copy_(ddt_)
                dx.mul_(dt)
                if D is not None:
                    dx.addcmul_(gy_, D)
                    dD += (gy_ * u_).sum((0, 1))
                _time_first(du, block).copy_(dx)
            return dA, dD

        parts = map_parts(work, plan.rows, u.device)
        dA = sum((part[0] for part in parts), torch.zeros_like(At))
        dD = None if D is None else sum((part[1] for part in parts), torch.zeros_like(D))
        dbias = ddt.sum((0, 1)) if ctx.has_bias else None
        dh0 = carry.transpose(1, 2) if ctx.has_h0 else None
        return None, None, du, ddt, dA.t(), dB, dC, dD, dbias, dh0


def chunked_scan(x: ScanInputs, softplus: bool, reverse: bool) -> tuple[Tensor, Tensor]:
    """As `naive_scan`; where no gradient is asked for, nothing is saved."""
    if want_gradient(*x):
        return _Scan.apply(softplus, reverse, *x)
    y, state, *_ = _forward(x, softplus, reverse, keep=False)
    return y, state.transpose(1, 2)
