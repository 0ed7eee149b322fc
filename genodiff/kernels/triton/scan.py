"""The selective scan on a GPU, through Triton (`scan_jit.py`).

Inputs are bfloat16, float16 or float32; states are float32, and kept in bfloat16 where the inputs
are. Where rows × channels are too few to fill the machine, time is cut into segments. Three passes
then find what each segment makes of a zero state, the state before each segment, and the outputs.
The number of segments is a function of the shape and of `choices.json` alone, and no sum is atomic:
the same inputs give the same bits.
"""

from math import e, log2
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from genodiff.kernels.direction import ScanInputs, want_gradient
from genodiff.kernels.triton.launch import CHOICES, kernels, next_power_of_2, use_device

_OF_CHAIN = ("E", "EXACT", "ASM", "T", "BE", "num_warps")
_STAGED = 64  # times that a program of `stage` or `unstage` moves


def plan_segments(rows: int, length: int, channels: int) -> tuple[int, int]:
    """(segments, tiles in each) of a scan of this shape."""
    k = kernels()
    tiles, warps = -(-length // k.T), rows * -(-channels // k.BE)
    if warps >= CHOICES["split_below"]:  # the machine is full without
        return 1, tiles
    wanted = -(-CHOICES["split_into"] // warps)
    each = max(CHOICES["least_tiles"], -(-tiles // wanted))
    return -(-tiles // each), each


def pack_channels(x: Tensor) -> Tensor:
    """`x` (B, L, C) with its channels contiguous; copied only if they are not."""
    # A gradient of a sum over time is expanded, with stride 0: its rows have to be copied.
    return x if x.stride(2) == 1 and x.stride(1) > 0 else x.contiguous()


class _ScanLaunch:
    """What the launches of one scan share: its shape, grid, strides and constants."""

    def __init__(self, u: Tensor, A2: Tensor, softplus: bool, reverse: bool) -> None:
        self.k = kernels()
        self.rows, self.length, self.channels = u.shape
        self.groups, self.N, _ = A2.shape
        self.group = self.rows // self.groups
        self.segments, self.tiles = plan_segments(self.rows, self.length, self.channels)
        self.n_tiles = -(-self.length // self.k.T)
        self.padded = self.n_tiles * self.k.T
        self.blocks = -(-self.channels // self.k.BE)
        self.grid = (self.blocks, self.segments, self.rows)
        self.reverse = reverse
        self.kind = CHOICES[str(u.dtype).removeprefix("torch.")]
        self.constants = dict(
            E=self.channels, N=self.N, REVERSE=reverse, SOFTPLUS=softplus,
            EVEN=self.padded == self.length, EXACT=self.kind["EXACT"],
            ASM=not self.k.interpreted, T=self.k.T, BE=self.k.BE, num_warps=1,
        )  # fmt: skip
        self.staging = (-(-self.padded // _STAGED), self.rows, 2)

    def options(self, kernel: str) -> dict[str, Any]:
        """The constants of a scan kernel."""
        found = self.constants | CHOICES[kernel] | self.kind.get(kernel, {})
        return found | {"AHEAD": ""} if self.k.interpreted else found

    def staged(self, B: Tensor, C: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """B and C as the kernels read them: (rows, tiles, 2N, T)."""
        bc = torch.empty(self.rows, 2 * self.N, self.padded, device=B.device, dtype=dtype)
        self.k.stage[self.staging](
            B, C, bc, self.length, self.padded, *B.stride(), *C.stride(), N=self.N,
            REVERSE=self.reverse, T=self.k.T, BN=next_power_of_2(self.N), BT=_STAGED
        )  # fmt: skip
        return bc

    def chain(self, local: Tensor, spans: Tensor, A2: Tensor, out: Tensor, back: bool) -> None:
        """Write the state before each segment into `out` (rows, segments, N, E).

        `local` and `spans` hold what each segment makes of a zero state, and the sum of its step
        sizes.
        """
        NE = self.N * self.channels
        shared = {name: self.constants[name] for name in _OF_CHAIN}
        self.k.scan_chain[(-(-NE // self.k.BE), self.rows)](
            local, spans, A2, out, self.segments, self.group, NE=NE, BACK=back, **shared
        )


def scan_forward(
    x: ScanInputs, *, softplus: bool, reverse: bool, keep: bool, output: bool = True
) -> tuple[Any, Tensor, Tensor | None]:
    """y, the last state (B, N, E), and with `keep` what `scan_backward` needs of the states.

    A is from `scale_rates`, D and bias are (groups, E): the rows of u are as many groups, one
    after the other. Without `output` there is no y.
    """
    u, delta, A2, B, C, D, bias, h0 = x
    go, b = _ScanLaunch(u, A2, softplus, reverse), _floats(bias, A2)
    d, y = b, u  # stand-ins, where there is no output
    if output:
        d, y = _floats(D, A2), torch.empty(u.shape, device=u.device, dtype=u.dtype)
    bc = go.staged(B, C)
    states = A2.new_empty(go.rows, go.segments, go.N, go.channels)
    states[:, 0] = 0 if h0 is None else h0.transpose(1, 2)
    dtype = u.dtype if u.dtype == torch.bfloat16 else A2.dtype  # float16's range is too small
    kept = None
    if keep:
        kept = A2.new_empty(go.rows, go.n_tiles, go.N, go.channels, dtype=dtype)
    spans = states
    if go.segments > 1 or not output:
        spans = A2.new_empty(go.rows, go.segments, go.channels)
    options = go.options("scan_forward") | dict(
        u_l=u.stride(1), delta_l=delta.stride(1), y_l=y.stride(1)
    )
    strides = (u.stride(0), delta.stride(0), y.stride(0))
    with use_device(u):
        if go.segments > 1:
            local = A2.new_zeros(go.rows, go.segments, go.N, go.channels)
            go.k.scan_forward[go.grid](
                u, delta, A2, bc, d, b, y, local, local, spans, go.length, go.tiles, go.group,
                *strides, OUTPUT=False, KEEP=False, **options,
            )  # fmt: skip
            go.chain(local, spans, A2, states, back=False)
        go.k.scan_forward[go.grid](
            u, delta, A2, bc, d, b, y, states, states if kept is None else kept, spans, go.length,
            go.tiles, go.group, *strides, OUTPUT=output, KEEP=keep, **options,
        )  # fmt: skip
    return y if output else None, states[:, -1], kept


def scan_backward(
    gy: Tensor, x: ScanInputs, kept: Tensor, *,
    softplus: bool, reverse: bool, g_last: Tensor | None = None,
    to: tuple[Tensor, Tensor] | None = None, over: bool = False,
) -> ScanInputs:  # fmt: skip
    """The gradients of all inputs in their dtypes, from those of y and the last state (B, E, N).

    `h0` is (B, N, E). Those of A (B, segments, N, E), D and bias (B, segments, E) are float32, to
    be summed over the segments and rows of each group.
    Those of B and C are written `to`, where it is given. With `over` those of u and delta take the
    memory of gy and delta, which are contiguous: a program has read what it writes over.
    """
    u, delta, A2, B, C, D, bias, _ = x
    go = _ScanLaunch(u, A2, softplus, reverse)
    d, b = _floats(D, A2), _floats(bias, A2)
    bc = go.staged(B, C, B.dtype if B.dtype == C.dtype else torch.float32)
    # Zeros of all that begins as zero, in one launch.
    zeros = A2.new_zeros(2 + (go.segments > 1), go.rows, go.segments, go.N, go.channels)
    carry, dA, *rest = zeros.unbind()
    if g_last is not None:
        carry[:, -1] = g_last.transpose(1, 2)
    du, ddelta = gy, delta
    if not over:
        du, ddelta = (torch.empty(t.shape, device=t.device, dtype=t.dtype) for t in (u, delta))
    dB, dC = to or (torch.empty_like(B), torch.empty_like(C))
    dbc = A2.new_empty(go.blocks, go.rows, 2 * go.N, go.padded)  # a slab for a block of channels
    dD, dbias = (A2.new_empty(go.rows, go.segments, go.channels) for _ in range(2))
    with use_device(u):
        if go.segments > 1:
            (local,), spans = rest, torch.empty_like(dD)
            go.k.scan_carry[go.grid](
                delta, gy, A2, bc, b, local, spans,
                go.length, go.tiles, go.group, delta.stride(0), gy.stride(0),
                delta_l=delta.stride(1), dy_l=gy.stride(1), **go.options("scan_carry"),
            )  # fmt: skip
            go.chain(local, spans, A2, carry, back=True)
        go.k.scan_backward[go.grid](
            u, delta, gy, A2, bc, d, b, kept, carry, du, ddelta, dbc, dA, dD, dbias,
            go.length, go.tiles, go.group, u.stride(0), delta.stride(0), gy.stride(0),
            u_l=u.stride(1), delta_l=delta.stride(1), dy_l=gy.stride(1),
            SUMS="plain" if go.k.interpreted else go.kind["SUMS"], **go.options("scan_backward"),
        )  # fmt: skip
        go.k.unstage[go.staging](
            dbc, dB, dC, go.length, go.padded, go.blocks, dbc[0].numel(), *dB.stride(),
            *dC.stride(), N=go.N, REVERSE=reverse, T=go.k.T, BN=next_power_of_2(go.N), BT=_STAGED,
        )  # fmt: skip
    return ScanInputs(du, ddelta, dA, dB, dC, dD, dbias, carry[:, 0])


def scale_rates(A: Tensor) -> Tensor:
    """A (groups, E, N) times log₂e as the kernels read it, (groups, N, E): they compute 2^x."""
    return (A.float() * log2(e)).transpose(1, 2).contiguous()


def _floats(x: Tensor | None, like: Tensor) -> Tensor:
    return like.new_zeros(like.shape[0], like.shape[2]) if x is None else x.float().contiguous()


def _as_one_group(x: ScanInputs) -> ScanInputs:
    """The inputs of a scan whose rows share A, D and bias, as the kernels read them."""
    D, bias = (None if of is None else of[None] for of in (x.D, x.bias))
    return x._replace(A=scale_rates(x.A[None]), D=D, bias=bias)


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, softplus: bool, reverse: bool, keep: bool, *inputs: Any
    ) -> tuple[Tensor, Tensor]:
        u, delta, *rest = inputs
        x = ScanInputs(pack_channels(u), pack_channels(delta), *rest)
        ctx.flags = dict(softplus=softplus, reverse=reverse)
        y, last, kept = scan_forward(_as_one_group(x), **ctx.flags, keep=keep)
        ctx.save_for_backward(*x[:-1], kept)
        ctx.h0_dtype = None if x.h0 is None else x.h0.dtype
        return y, last.transpose(1, 2).contiguous()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gy: Tensor, g_last: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, kept = ctx.saved_tensors
        x = ScanInputs(*inputs)
        gy = pack_channels(gy)
        g = scan_backward(gy, _as_one_group(x), kept, **ctx.flags, g_last=g_last)
        assert g.D is not None
        assert g.bias is not None
        assert g.h0 is not None
        return (
            None, None, None, g.u, g.delta, g.A.sum((0, 1)).t().to(x.A.dtype), g.B, g.C,
            None if x.D is None else g.D.sum((0, 1)).to(x.D.dtype),
            None if x.bias is None else g.bias.sum((0, 1)).to(x.bias.dtype),
            None if ctx.h0_dtype is None else g.h0.transpose(1, 2).to(ctx.h0_dtype),
        )  # fmt: skip


def triton_scan(x: ScanInputs, softplus: bool, reverse: bool) -> tuple[Tensor, Tensor]:
    """As `naive_scan`, for tensors that the kernels can take, and none of them empty.

    y is in the dtype of u, the state after the last step in float32.
    """
    found: tuple[Tensor, Tensor] = _Scan.apply(softplus, reverse, want_gradient(*x), *x)
    return found
