"""The selective scan on a GPU, through Triton (`scan_jit.py`). Inputs are bfloat16, float16
or float32; states are float32.

Where rows × channels are too few to fill the machine, time is cut into segments: what each makes of
a zero state (pass 1), the state before each (pass 2), the outputs (pass 3). How many is a function
of the shape and of `choices.json` alone, no sum is atomic, and nothing is tuned at run time: the
same inputs give the same bits, in every run.
"""

import json
import logging
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from math import e, log2
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels.naive import naive_scan
from genodiff.kernels.native import native_scan

_log = logging.getLogger("genodiff")
CHOICES: dict[str, Any] = json.loads(Path(__file__).with_name("choices.json").read_text())
_STAGED = 64  # times that a program of the staging kernels moves


class _Fused(NamedTuple):
    """A kernel whose products and sums are contracted into one operation. Triton up to 3.9 does so
    unasked, 3.9 warns that a later one will not, and a run that resumes keeps its bits.
    """

    kernel: Any

    def __getitem__(self, grid: Any) -> Any:
        return partial(self.kernel[grid], enable_fp_fusion=True)


@cache
def kernels() -> SimpleNamespace:
    """The compiled kernels, and what holds for all of them. Triton's interpreter takes small tiles:
    it is slow.
    """
    found: dict[str, Any] = {}
    for name in ("scan_jit", "staging", "mixer_jit", "norm_jit"):
        module = import_module(f"genodiff.kernels.triton.{name}")
        found |= {
            k: v
            for k, v in vars(module).items()
            if k.startswith(("scan_", "conv_", "gate_", "norm_", "stage", "unstage"))
        }
    interpreted = type(found["scan_forward"]).__name__ == "InterpretedFunction"
    T, BE = (4, 8) if interpreted else (16, 32)
    return SimpleNamespace(
        **{name: _Fused(kernel) for name, kernel in found.items()},
        interpreted=interpreted,
        T=T,
        BE=BE,
    )


@cache
def why_not() -> str | None:
    """None where the kernels run and agree with the naive scan; else what is missing."""
    if find_spec("triton") is None:
        return "triton is not installed"
    if not torch.cuda.is_available():
        return "no CUDA device"
    if torch.version.hip is not None:
        return "the kernels are written for NVIDIA's matrix units"
    if torch.cuda.get_device_capability() < (8, 0):
        return "the GPU is older than compute capability 8.0"
    _log.info("GPU kernels: compiling and testing; the first time takes up to a minute")
    try:
        return _fault()
    except Exception as error:  # a compiler or a driver: whatever it says, the torch scan runs
        return (
            f"its first run failed: {type(error).__name__}: "
            f"{str(error).splitlines()[0] if str(error) else 'no message'}"
        )


def _fault() -> str | None:
    """What is wrong with the kernels on small problems on this GPU, or None."""
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast("cuda", enabled=False):
        for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 3e-2)):
            for reverse in (False, True):
                exact, got = (
                    _small_problem(scan, reverse, x)
                    for scan, x in ((naive_scan, torch.float64), (triton_scan, dtype))
                )
                error = max(
                    float((a - b).norm() / a.norm()) for a, b in zip(exact, got, strict=True)
                )
                if not error < tolerance:
                    return (
                        f"differs from the naive scan by {error:.1e} on this GPU, in "
                        f"{str(dtype).removeprefix('torch.')}"
                    )
    return None


def _small_problem(scan: Any, reverse: bool, dtype: torch.dtype) -> list[Tensor]:
    batch, length, channels, states = 2, 37, 40, 3
    wide = torch.float64 if dtype == torch.float64 else torch.float32

    def wave(*shape: int, phase: float, to: torch.dtype) -> Tensor:
        n = torch.arange(float(torch.Size(shape).numel()), dtype=torch.float64)
        return torch.sin(n * 0.7 + phase).reshape(shape).bfloat16().to("cuda", to).requires_grad_()

    u, delta = (wave(batch, length, channels, phase=p, to=dtype) for p in (0.0, 1.0))
    B, C = (wave(batch, length, states, phase=p, to=dtype) for p in (3.0, 4.0))
    log_a, D, bias = (
        wave(*shape, phase=p, to=wide)
        for shape, p in (((channels, states), 5.0), ((channels,), 6.0), ((channels,), 7.0))
    )
    y, state = scan(u, delta, -torch.exp(log_a), B, C, D, None, bias, True, reverse, None)
    (F.silu(y.to(wide)).sum() + state.sum()).backward()
    return [
        x.detach().double()
        for x in (
            y,
            state,
            *(x.grad for x in (u, delta, B, C, log_a, D, bias) if x.grad is not None),
        )
    ]


@cache
def _interpreted() -> bool:
    return find_spec("triton") is not None and kernels().interpreted


def fits(*tensors: Tensor | None) -> bool:
    """Whether the kernels can take these tensors."""
    kinds = (torch.float32, torch.bfloat16, torch.float16)
    return all(x is None or (x.dtype in kinds and (x.is_cuda or _interpreted())) for x in tensors)


def segments_of(rows: int, length: int, channels: int) -> tuple[int, int]:
    """(segments, tiles in each) of a scan of this shape."""
    k = kernels()
    tiles, warps = -(-length // k.T), rows * -(-channels // k.BE)
    if warps >= CHOICES["split_below"]:
        return 1, tiles
    wanted = -(-CHOICES["split_into"] // warps)
    each = max(CHOICES["least_tiles"], -(-tiles // wanted))
    return -(-tiles // each), each


def rows_of(x: Tensor) -> Tensor:
    """`x` (B, L, C) with neighbouring channels side by side, copied only if they are not."""
    return x if x.stride(2) == 1 and x.stride(1) > 0 else x.contiguous()


class _Launch:
    """What the launches of one scan share."""

    def __init__(self, u: Tensor, N: int, softplus: bool, reverse: bool) -> None:
        self.k = kernels()
        self.rows, self.length, self.channels, self.N = *u.shape, N
        self.segments, self.tiles = segments_of(self.rows, self.length, self.channels)
        self.n_tiles = -(-self.length // self.k.T)
        self.padded = self.n_tiles * self.k.T
        self.blocks = -(-self.channels // self.k.BE)
        self.grid = (self.blocks, self.segments, self.rows)
        self.reverse = reverse
        self.kind = CHOICES[str(u.dtype).removeprefix("torch.")]
        self.constants = dict(
            E=self.channels, N=N, REVERSE=reverse, SOFTPLUS=softplus,
            EVEN=self.padded == self.length, EXACT=self.kind["EXACT"],
            ASM=not self.k.interpreted, T=self.k.T, BE=self.k.BE, num_warps=1,
        )  # fmt: skip
        self.staging = (-(-self.padded // _STAGED), self.rows, 2)

    def options(self, kernel: str) -> dict[str, Any]:
        """The constants of a scan kernel."""
        return self.constants | CHOICES[kernel] | self.kind.get(kernel, {})

    def staged(self, B: Tensor, C: Tensor) -> Tensor:
        """B and C as the kernels read them, (rows, 2N, padded)."""
        bc = torch.empty(self.rows, 2 * self.N, self.padded, device=B.device, dtype=torch.float32)
        self.k.stage[self.staging](
            B, C, bc, self.length, self.padded, *B.stride(), *C.stride(), N=self.N,
            REVERSE=self.reverse, BN=_power(self.N), BT=_STAGED
        )  # fmt: skip
        return bc

    def unstaged(self, dbc: Tensor, to: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """The gradients of B and C from the slabs."""
        dB, dC = to
        self.k.unstage[self.staging](
            dbc, dB, dC, self.length, self.padded, self.blocks,
            self.rows * 2 * self.N * self.padded,
            *dB.stride(), *dC.stride(), N=self.N, REVERSE=self.reverse, BN=_power(self.N),
            BT=_STAGED,
        )  # fmt: skip
        return dB, dC

    def chain(
        self, local: Tensor, spans: Tensor, A2: Tensor, out: Tensor, stride: int, back: bool
    ) -> None:
        """The state before each segment into `out` (rows, slots, N, E), whose slots of segments are
        `stride` apart.
        """
        NE = self.N * self.channels
        self.k.scan_chain[(-(-NE // 128), self.rows)](
            local, spans, A2, out, self.segments, out.stride(0), stride * NE, NE=NE,
            E=self.channels, BACK=back,
            EXACT=self.constants["EXACT"], ASM=self.constants["ASM"], BLOCK=128,
        )  # fmt: skip


def _power(n: int) -> int:
    return max(2, 1 << (n - 1).bit_length())


class Gradients(NamedTuple):
    """What `scan_backward` finds, in the dtypes of the inputs; the sums over rows and time in
    float32. `h0` is (B, N, E).
    """

    u: Tensor
    delta: Tensor
    A: Tensor
    B: Tensor
    C: Tensor
    D: Tensor
    bias: Tensor
    h0: Tensor


def scan_forward(
    u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor | None,
    bias: Tensor | None, *,
    softplus: bool, reverse: bool, keep: bool, h0: Tensor | None = None, onto: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """y, or `onto` with y added to it, and the states (B, slots, N, E) of which the last is the
    last one; with `keep` all that `scan_backward` wants.
    """
    go, A2 = _Launch(u, A.shape[1], softplus, reverse), _transposed(A)
    d, b = _floats(D, A2), _floats(bias, A2)
    bc = go.staged(B, C)
    states = A2.new_empty(go.rows, go.n_tiles + 1 if keep else go.segments, go.N, go.channels)
    states[:, 0] = 0 if h0 is None else h0.transpose(1, 2)
    y = torch.empty(u.shape, device=u.device, dtype=u.dtype) if onto is None else onto
    options = go.options("scan_forward") | dict(
        u_l=u.stride(1), delta_l=delta.stride(1), y_l=y.stride(1)
    )
    strides = (u.stride(0), delta.stride(0), y.stride(0))
    with on(u):
        if go.segments > 1:
            local = A2.new_zeros(go.rows, go.segments, go.N, go.channels)
            spans = A2.new_empty(go.rows, go.segments, go.channels)
            go.k.scan_forward[go.grid](
                u, delta, A2, bc, d, b, y, local, spans, go.length, go.tiles, *strides,
                OUTPUT=False, KEEP=False, ONTO=False, **options
            )  # fmt: skip
            go.chain(local, spans, A2, states, go.tiles if keep else 1, back=False)
        go.k.scan_forward[go.grid](
            u, delta, A2, bc, d, b, y, states, states, go.length, go.tiles, *strides,
            OUTPUT=True, KEEP=keep, ONTO=onto is not None, **options,
        )  # fmt: skip
    return y, states


def scan_backward(
    gy: Tensor, u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor | None,
    bias: Tensor | None, states: Tensor, *,
    softplus: bool, reverse: bool, g_last: Tensor | None = None, to: tuple[Tensor,
    Tensor] | None = None,
) -> Gradients:  # fmt: skip
    """The gradients from that of y and of the last state (B, E, N); those of B and C are written
    `to` where it is given.
    """
    go, A2 = _Launch(u, A.shape[1], softplus, reverse), _transposed(A)
    d, b = _floats(D, A2), _floats(bias, A2)
    bc = go.staged(B, C)
    carry = A2.new_empty(go.rows, go.segments, go.N, go.channels)
    carry[:, -1] = 0 if g_last is None else g_last.transpose(1, 2)
    du, ddelta = (torch.empty(x.shape, device=x.device, dtype=x.dtype) for x in (u, delta))
    dA, dbc = torch.zeros_like(carry), A2.new_empty(go.blocks, go.rows, 2 * go.N, go.padded)
    dD, dbias = (A2.new_empty(go.rows, go.segments, go.channels) for _ in range(2))
    with on(u):
        if go.segments > 1:
            local, spans = torch.zeros_like(carry), torch.empty_like(dD)
            go.k.scan_carry[go.grid](
                delta, gy, A2, bc, b, local, spans, go.length, go.tiles, delta.stride(0),
                gy.stride(0),
                delta_l=delta.stride(1), dy_l=gy.stride(1), **go.options("scan_carry"),
            )  # fmt: skip
            go.chain(local, spans, A2, carry, 1, back=True)
        go.k.scan_backward[go.grid](
            u, delta, gy, A2, bc, d, b, states, carry, du, ddelta, dbc, dA, dD, dbias, go.length,
            go.tiles,
            u.stride(0), delta.stride(0), gy.stride(0), u_l=u.stride(1), delta_l=delta.stride(1),
            dy_l=gy.stride(1),
            SUMS="plain" if go.k.interpreted else go.kind["SUMS"], **go.options("scan_backward"),
        )  # fmt: skip
        dB, dC = go.unstaged(dbc, to or (torch.empty_like(B), torch.empty_like(C)))
    return Gradients(
        du, ddelta, dA.sum((0, 1)).t(), dB, dC, dD.sum((0, 1)), dbias.sum((0, 1)), carry[:, 0]
    )


def _transposed(A: Tensor) -> Tensor:
    """A log₂e as the kernels read it, (N, E)."""
    return (A.float() * log2(e)).t().contiguous()


def _floats(x: Tensor | None, like: Tensor) -> Tensor:
    return like.new_zeros(like.shape[1]) if x is None else x.float().contiguous()


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor | None,
        bias: Tensor | None, softplus: bool, reverse: bool, h0: Tensor | None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        u, delta, keep = rows_of(u), rows_of(delta), any(ctx.needs_input_grad)
        y, states = scan_forward(
            u, delta, A, B, C, D, bias, softplus=softplus, reverse=reverse, keep=keep, h0=h0
        )
        ctx.save_for_backward(u, delta, A, B, C, D, bias, states if keep else None)
        ctx.softplus, ctx.reverse, ctx.h0_dtype = (
            softplus,
            reverse,
            None if h0 is None else h0.dtype,
        )
        return y, states[:, -1].transpose(1, 2).contiguous()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor, g_last: Tensor) -> tuple[Tensor | None, ...]:
        u, delta, A, B, C, D, bias, states = ctx.saved_tensors
        g = scan_backward(
            rows_of(gy),
            u,
            delta,
            A,
            B,
            C,
            D,
            bias,
            states,
            softplus=ctx.softplus,
            reverse=ctx.reverse,
            g_last=g_last,
        )
        return (
            g.u, g.delta, g.A.to(A.dtype), g.B, g.C, None if D is None else g.D.to(D.dtype),
            None if bias is None else g.bias.to(bias.dtype), None, None,
            None if ctx.h0_dtype is None else g.h0.transpose(1, 2).to(ctx.h0_dtype),
        )  # fmt: skip


def on(x: Tensor) -> Any:
    """A context in which Triton launches on the device of x."""
    return torch.cuda.device(x.device) if x.is_cuda else torch.no_grad()


def triton_scan(
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
    """As `naive_scan`: outputs y, in the dtype of u, and the state after the last step, in float32."""
    if not u.numel() or not fits(u, delta, A, B, C, D, z, delta_bias, h0):
        inputs = (u, delta, A, B, C, D, z, delta_bias, h0)
        wide = (
            torch.float64
            if any(x is not None and x.dtype == torch.float64 for x in inputs)
            else torch.float32
        )
        u_, delta_, A_, B_, C_, D_, z_, bias_, h0_ = (
            cast(Any, None if x is None else x.to(wide)) for x in inputs
        )
        y, last = native_scan(u_, delta_, A_, B_, C_, D_, z_, bias_, delta_softplus, reverse, h0_)
        return y.to(u.dtype), last
    y, last = _Scan.apply(u, delta, A, B, C, D, delta_bias, delta_softplus, reverse, h0)
    return y if z is None else y * F.silu(z), last
