"""The selective scan, one step at a time: the definition that faster versions are tested against.

    dt_t = softplus(delta_t + delta_bias)            h_t = exp(dt_t A) ⊙ h_{t-1} + dt_t u_t B_tᵀ
    y_t  = h_t C_t + D ⊙ u_t                         y_t ← y_t ⊙ silu(z_t)

Batch B, length L, channels E, states N. Any float dtype; autograd gives the gradients. Source: Gu
and Dao, 2023, arXiv 2312.00752. `find_error` compares another scan with it on a small problem.
"""

import logging
from collections.abc import Callable
from itertools import product

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from genodiff.kernels.direction import ScanInputs


def naive_scan(
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
    """Outputs y and the state after the last step; with `reverse` time runs from L−1 down to 0."""
    dt = delta if delta_bias is None else delta + delta_bias
    if delta_softplus:
        dt = F.softplus(dt)
    # unbind, for the gradient of one slice would be as large as the whole tensor.
    steps = list(zip(u.unbind(1), dt.unbind(1), B.unbind(1), C.unbind(1), strict=True))
    h = u.new_zeros(u.shape[0], *A.shape) if h0 is None else h0
    ys = []
    for u_t, dt_t, B_t, C_t in reversed(steps) if reverse else steps:
        h = torch.exp(dt_t[:, :, None] * A) * h + (dt_t * u_t)[:, :, None] * B_t[:, None, :]
        ys.append((h * C_t[:, None, :]).sum(-1))
    y = torch.stack(ys[::-1] if reverse else ys, 1)
    if D is not None:
        y = y + D * u
    return (y if z is None else y * F.silu(z)), h


def run_naively(x: ScanInputs, softplus: bool, reverse: bool) -> tuple[Tensor, Tensor]:
    """`naive_scan` in the form of its implementations."""
    return naive_scan(*x[:6], None, x.bias, softplus, reverse, x.h0)


_log = logging.getLogger("genodiff")
ScanFunction = Callable[[ScanInputs, bool, bool], tuple[Tensor, Tensor]]
"""(inputs, whether delta is a step size before softplus, reverse) -> (y, the last state)."""
# The largest relative error, in norm. Inputs are exact in each dtype, so that it is rounding alone.
_TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 3e-2}


def find_error(
    scan: ScanFunction, device: str, dtypes: tuple[torch.dtype, ...], of_state: bool = True
) -> str | None:
    """What is wrong with `scan` on a type of device, in words; None if nothing.

    Without `of_state` the last state need have no gradient.
    """
    if device == "cuda":
        _log.info("GPU kernels: compiling and testing; the first time takes up to a minute")
    # The first scan of a process may run inside a checkpointed block, whose hooks count the tensors
    # that are saved for the backward pass. The self-test must not be counted.
    unhooked = torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)
    try:
        with (
            torch.inference_mode(False),
            torch.enable_grad(),
            torch.autocast(device, enabled=False),
            unhooked,
        ):
            for dtype, reverse in product(dtypes, (False, True)):
                exact = _solve(run_naively, reverse, "cpu", torch.float64, of_state)
                rounded = _solve(scan, reverse, device, dtype, of_state)
                pairs = zip(exact, rounded, strict=True)
                errors = [float((a - b).norm() / a.norm()) for a, b in pairs]
                worst = max(errors, key=lambda error: (error != error, error))  # NaN is the worst
                if not worst < _TOLERANCES[dtype]:
                    kind = str(dtype).removeprefix("torch.")
                    what = f"differs from the naive scan by {worst:.1e} on this machine, in {kind}"
                    _log.warning("a scan on %s is not used: it %s", device, what)
                    return what
            return None
    except Exception as error:  # a compiler or a driver may raise anything
        # Another scan runs instead, and is slower: the cause must be seen.
        _log.warning("the self-test of a scan on %s failed", device, exc_info=True)
        text = str(error).splitlines()[0] if str(error) else "no message"
        return f"its first run failed: {type(error).__name__}: {text}"


def _solve(
    scan: ScanFunction, reverse: bool, device: str, dtype: torch.dtype, of_state: bool
) -> list[Tensor]:
    """y, the last state and all gradients of a small problem, in float64 on the CPU."""
    # 37 steps and 40 channels are no multiples of a chunk, a tile or a vector of any kernel.
    batch, length, channels, states = 2, 37, 40, 3
    wide = torch.promote_types(dtype, torch.float32)  # of what does not vary in time

    def wave(*shape: int, phase: float, to: torch.dtype) -> Tensor:
        n = torch.arange(float(torch.Size(shape).numel()), dtype=torch.float64)
        # Rounded to bfloat16: every dtype then holds the same numbers.
        return torch.sin(n * 0.7 + phase).reshape(shape).bfloat16().to(device, to).requires_grad_()

    u, delta = (wave(batch, length, channels, phase=p, to=dtype) for p in (0.0, 1.0))
    B, C = (wave(batch, length, states, phase=p, to=dtype) for p in (3.0, 4.0))
    log_a = wave(channels, states, phase=5.0, to=wide)
    D, bias = (wave(channels, phase=p, to=wide) for p in (6.0, 7.0))
    inputs = ScanInputs(u, delta, -torch.exp(log_a), B, C, D, bias)
    y, state = scan(inputs, True, reverse)
    loss = F.silu(y.to(wide)).sum()
    (loss + state.sum() if of_state else loss).backward()
    gradients = [x.grad for x in (u, delta, B, C, log_a, D, bias) if x.grad is not None]
    return [x.detach().double().cpu() for x in (y, state, *gradients)]
