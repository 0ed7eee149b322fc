"""The selective scan in pure torch, block by block in time, with its own backward: what runs where no compiled kernel does.

Notation as in `naive.py`. Inside a block of T steps everything but the recurrence is one operation over (T, b, N, E), channels
innermost so that every operation runs over contiguous memory; the recurrence is one fused multiply-add per step, in place.
Only the inputs and the state before every saved block are kept; the backward pass recomputes a block's decays and states from them:

    g_t = C_t ⊙ ∂y_t + exp(dt_{t+1} A) ⊙ g_{t+1}          w_t = g_t ⊙ exp(dt_t A) ⊙ h_{t-1}
    ∂C_t = Σ_e h_t ∂y_t     ∂B_t = Σ_e g_t dt_t u_t     ∂(dt u)_t = Σ_n g_t B_t     ∂dt_t ∋ Σ_n w_t A     ∂A = Σ_t w_t dt_t

Nothing is divided by a cumulative product, so that decays may underflow.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

SAVED_EVERY = 32  # steps between saved states: N/32 floats per channel and token


def _blocks(length: int, size: int, reverse: bool) -> list[tuple[int, int]]:
    """Block bounds in the order in which the scan visits them."""
    cuts = [(start, min(start + size, length)) for start in range(0, length, size)]
    return cuts[::-1] if reverse else cuts


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor | None, z: Tensor | None,
        bias: Tensor | None, softplus: bool, reverse: bool, h0: Tensor | None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        batch, length, channels = u.shape
        blocks = _blocks(length, SAVED_EVERY, reverse)
        saved = u.new_empty(len(blocks), batch, A.shape[1], channels) if any(ctx.needs_input_grad) else None
        At = A.t().contiguous()
        h = u.new_zeros(batch, *At.shape) if h0 is None else h0.transpose(1, 2).contiguous()
        y = torch.empty_like(u)
        for k, (start, end) in enumerate(blocks):
            if saved is not None:
                saved[k] = h
            dt, _ = _dt(delta[:, start:end], bias, softplus)
            _, states = _states(dt, u[:, start:end], At, B[:, start:end], h, reverse)
            out = torch.matmul(C[:, start:end].transpose(0, 1).unsqueeze(2), states).squeeze(2).transpose(0, 1)
            if D is not None:
                out = torch.addcmul(out, u[:, start:end], D)
            y[:, start:end] = out if z is None else out * F.silu(z[:, start:end])
            h = states[0 if reverse else -1].clone()
        ctx.save_for_backward(u, delta, A, B, C, D, z, bias, saved)
        ctx.softplus, ctx.reverse, ctx.has_h0 = softplus, reverse, h0 is not None
        return y, h.transpose(1, 2).contiguous()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        gy, g_last = grads
        u, delta, A, B, C, D, z, bias, saved = ctx.saved_tensors
        reverse = ctx.reverse
        blocks = _blocks(u.shape[1], SAVED_EVERY, reverse)
        At = A.t().contiguous()
        dA = torch.zeros_like(At)
        du, ddelta, dB, dC = (torch.empty_like(x) for x in (u, delta, B, C))
        dz = None if z is None else torch.empty_like(z)
        dD = None if D is None else torch.zeros_like(D)
        carry = g_last.transpose(1, 2).contiguous()  # the adjoint of the state that leaves the block
        for k in range(len(blocks) - 1, -1, -1):
            span = slice(*blocks[k])
            u_, B_, C_, gy_ = u[:, span], B[:, span], C[:, span], gy[:, span]
            dt, slope = _dt(delta[:, span], bias, ctx.softplus)
            a, states = _states(dt, u_, At, B_, saved[k], reverse)
            steps = a.shape[0]
            if z is not None:
                z_ = z[:, span]
                out = torch.matmul(C_.transpose(0, 1).unsqueeze(2), states).squeeze(2).transpose(0, 1)
                if D is not None:
                    out = out + D * u_
                gate = torch.sigmoid(z_)
                dz[:, span] = gy_ * out * gate * (1 + z_ * (1 - gate))  # type: ignore[index]
                gy_ = gy_ * z_ * gate
            g = gy_.transpose(0, 1).unsqueeze(2) * C_.transpose(0, 1).unsqueeze(3)
            order = range(steps) if reverse else range(steps - 1, -1, -1)
            for t in order:
                g[t].add_(carry)
                carry = a[t] * g[t]
            before = torch.cat([states[1:], saved[k][None]]) if reverse else torch.cat([saved[k][None], states[:-1]])
            w = before.mul_(a).mul_(g)
            dtt = dt.transpose(0, 1)
            dA += (w * dtt.unsqueeze(2)).sum((0, 1))
            ddt = (w * At).sum(2).transpose(0, 1)
            dC[:, span] = torch.matmul(states, gy_.transpose(0, 1).unsqueeze(3)).squeeze(3).transpose(0, 1)
            dB[:, span] = torch.matmul(g, (dtt * u_.transpose(0, 1)).unsqueeze(3)).squeeze(3).transpose(0, 1)
            dx = torch.matmul(B_.transpose(0, 1).unsqueeze(2), g).squeeze(2).transpose(0, 1)
            ddt = ddt + dx * u_
            ddelta[:, span] = ddt if slope is None else ddt * slope
            du[:, span] = dx * dt
            if D is not None:
                du[:, span] += gy_ * D
                dD += (gy_ * u_).sum((0, 1))
        dbias = None if bias is None else ddelta.sum((0, 1))
        dh0 = carry.transpose(1, 2) if ctx.has_h0 else None
        return du, ddelta, dA.t(), dB, dC, dD, dz, dbias, None, None, dh0


def _dt(delta: Tensor, bias: Tensor | None, softplus: bool) -> tuple[Tensor, Tensor | None]:
    """The step sizes of a block and, under softplus, their slope in delta."""
    dt = delta if bias is None else delta + bias
    return (F.softplus(dt), torch.sigmoid(dt)) if softplus else (dt, None)


def _states(dt: Tensor, u: Tensor, At: Tensor, B: Tensor, h: Tensor, reverse: bool) -> tuple[Tensor, Tensor]:
    """A block's decays and states, both (T, b, N, E)."""
    a = (dt.transpose(0, 1).unsqueeze(2) * At).exp_()
    x = (dt * u).transpose(0, 1).unsqueeze(2) * B.transpose(0, 1).unsqueeze(3)
    steps = a.shape[0]
    for t in range(steps - 1, -1, -1) if reverse else range(steps):
        h = x[t].addcmul_(a[t], h)
    return a, x


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
    """As `naive_scan`: outputs y and the state after the last step."""
    return _Scan.apply(u, delta, A, B, C, D, z, delta_bias, delta_softplus, reverse, h0)
