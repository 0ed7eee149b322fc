"""The selective scan and the causal convolution in C (`native/`), called through ctypes.

float32 on a CPU; anything else goes to the torch versions. The library is built when genodiff is installed, where there is a
compiler; `why_not()` says what is missing. It needs no compiler, and no headers, to run.

Work is divided by shape alone and partial sums are added in a fixed order, so that results are the same, bit for bit, for any
number of threads.
"""

import ctypes
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from genodiff.kernels.chunked import chunked_scan

CHUNK = 64  # steps between saved states, as in native.c
CONV_PIECE = 256  # steps of a task of the convolution, as in native.c
MAX_TAPS = 16
_FEW_SEQUENCES = 8  # below this many, channels are divided over tasks as well

_SCAN_POINTERS = "u delta A B C D bias h0 gy ghlast y states hlast du ddelta dA dB dC dD dbias dh0".split()
_SCAN_NUMBERS = (
    "batch L E N group u_b u_l delta_b delta_l B_b B_l C_b C_l y_b y_l gy_b gy_l du_b du_l ddelta_b ddelta_l softplus reverse failed"
).split()
_CONV_POINTERS = "x w bias gy y dx part".split()
_CONV_NUMBERS = "batch L E K x_b x_l y_b y_l gy_b gy_l dx_b dx_l silu reverse".split()


def _structure(pointers: list[str], numbers: list[str]) -> type[ctypes.Structure]:
    fields = [(name, ctypes.c_void_p) for name in pointers] + [(name, ctypes.c_int64) for name in numbers]
    return type("Arguments", (ctypes.Structure,), {"_fields_": fields})


_ScanArguments = _structure(_SCAN_POINTERS, _SCAN_NUMBERS)
_ConvArguments = _structure(_CONV_POINTERS, _CONV_NUMBERS)


def _open(name: str) -> ctypes.CDLL | None:
    for suffix in EXTENSION_SUFFIXES:
        path = Path(__file__).with_name(f"_native_{name}{suffix}")
        if path.is_file():
            try:
                library = ctypes.CDLL(str(path))
            except OSError:
                return None
            library.genodiff_scan.argtypes = [ctypes.POINTER(_ScanArguments), ctypes.c_int, ctypes.c_int]
            library.genodiff_conv.argtypes = [ctypes.POINTER(_ConvArguments), ctypes.c_int, ctypes.c_int]
            library.genodiff_scan.restype = library.genodiff_conv.restype = None
            library.genodiff_vector_bits.restype = ctypes.c_int
            return library
    return None


@cache
def _library() -> tuple[ctypes.CDLL, str] | None:
    """The copy for this machine's widest instruction set, and its name. torch is imported first: one OpenMP for both."""
    base = _open("base")
    if base is None:
        return None
    bits = base.genodiff_vector_bits()
    for name, needed in (("avx512", 512), ("avx2", 256)):
        if bits >= needed and (library := _open(name)) is not None:
            return library, name
    return base, "base"


def why_not() -> str | None:
    """None where the library runs; else what is missing."""
    if _library() is None:
        return "the C library was not built: install a C compiler (gcc or clang with OpenMP), then install genodiff again"
    return None


def instruction_set() -> str:
    """"avx512", "avx2", "base", or "" where there is no library."""
    found = _library()
    return found[1] if found else ""


def _fits(*tensors: Tensor | None) -> bool:
    return _library() is not None and all(x is None or (x.dtype == torch.float32 and x.device.type == "cpu") for x in tensors)


def _rows(x: Tensor) -> Tensor:
    """`x` (B, L, C) with neighbouring channels side by side, copied only if they are not."""
    return x if x.stride(2) == 1 or x.shape[2] == 1 else x.contiguous()


def _fill(arguments: Any, tensors: dict[str, Tensor | None], strided: tuple[str, ...]) -> None:
    for name, x in tensors.items():
        setattr(arguments, name, None if x is None else x.data_ptr())
        if name in strided and x is not None:
            setattr(arguments, f"{name}_b", x.stride(0))
            setattr(arguments, f"{name}_l", x.stride(1))


def _group(batch: int, channels: int) -> int:
    """Channels of a task: all of them when there are sequences enough, else about an eighth; a function of the shape alone."""
    if batch >= _FEW_SEQUENCES:
        return max(channels, 1)
    share = -(-channels * batch // _FEW_SEQUENCES)
    return max(16, -(-share // 16) * 16)


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor | None,
        bias: Tensor | None, softplus: bool, reverse: bool, h0: Tensor | None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        u, delta, B, C = _rows(u), _rows(delta), _rows(B), _rows(C)
        D, bias, h0 = (None if x is None else x.contiguous() for x in (D, bias, h0))
        (batch, length, channels), n_state, A = u.shape, A.shape[1], A.t().contiguous()
        y, last = u.new_empty(u.shape), u.new_empty(batch, channels, n_state)
        keep = any(ctx.needs_input_grad)
        states = u.new_empty(batch, -(-length // CHUNK), n_state, channels) if keep else None
        tensors = dict(u=u, delta=delta, A=A, B=B, C=C, D=D, bias=bias, h0=h0, y=y, states=states, hlast=last)
        _run_scan(tensors, softplus, reverse, backward=False)
        ctx.save_for_backward(u, delta, A, B, C, D, bias, h0, states)
        ctx.softplus, ctx.reverse = softplus, reverse
        return y, last

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        u, delta, A, B, C, D, bias, h0, states = ctx.saved_tensors
        (batch, length, channels), n_state = u.shape, A.shape[0]
        gy, g_last = _rows(grads[0]), grads[1].contiguous()
        parts = -(-channels // _group(batch, channels))
        du, ddelta = u.new_empty(u.shape), u.new_empty(u.shape)
        dA = u.new_empty(batch, n_state, channels)
        dB, dC = (u.new_empty(parts, batch, length, n_state) for _ in range(2))
        dD, dbias = (u.new_empty(batch, channels) for _ in range(2))
        dh0 = None if h0 is None else torch.empty_like(h0)
        tensors = dict(u=u, delta=delta, A=A, B=B, C=C, D=D, bias=bias, states=states, gy=gy, ghlast=g_last)
        tensors |= dict(du=du, ddelta=ddelta, dA=dA, dB=dB, dC=dC, dD=dD, dbias=dbias, dh0=dh0)
        _run_scan(tensors, ctx.softplus, ctx.reverse, backward=True)
        dB, dC = (x[0] if parts == 1 else x.sum(0) for x in (dB, dC))
        return (
            du, ddelta, dA.sum(0).t(), dB, dC, None if D is None else dD.sum(0), None if bias is None else dbias.sum(0), None, None, dh0,
        )  # fmt: skip


def _run_scan(tensors: dict[str, Tensor | None], softplus: bool, reverse: bool, *, backward: bool) -> None:
    found = _library()
    assert found is not None
    u, A = tensors["u"], tensors["A"]
    assert u is not None
    assert A is not None
    arguments = _ScanArguments()
    _fill(arguments, tensors, ("u", "delta", "B", "C", "y", "gy", "du", "ddelta"))
    arguments.batch, arguments.L, arguments.E = u.shape  # type: ignore[attr-defined]
    arguments.N = A.shape[0]  # type: ignore[attr-defined]
    arguments.group = _group(u.shape[0], u.shape[2])  # type: ignore[attr-defined]
    arguments.softplus, arguments.reverse = int(softplus), int(reverse)  # type: ignore[attr-defined]
    if u.numel():
        found[0].genodiff_scan(ctypes.byref(arguments), int(backward), torch.get_num_threads())
    if arguments.failed:  # type: ignore[attr-defined]
        raise MemoryError("no memory for the scan's scratch space")


def native_scan(
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
    if not _fits(u, delta, A, B, C, D, z, delta_bias, h0) or not u.numel():
        return chunked_scan(u, delta, A, B, C, D, z, delta_bias, delta_softplus, reverse, h0)
    y, last = _Scan.apply(u, delta, A, B, C, D, delta_bias, delta_softplus, reverse, h0)
    return y if z is None else y * F.silu(z), last


class _Conv(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, reverse: bool, silu: bool) -> Tensor:
        x, weight, bias = _rows(x), weight.contiguous(), None if bias is None else bias.contiguous()
        y = x.new_empty(x.shape)
        _run_conv(dict(x=x, w=weight, bias=bias, y=y), reverse, silu, backward=False)
        ctx.save_for_backward(x, weight, bias)
        ctx.reverse, ctx.silu = reverse, silu
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias = ctx.saved_tensors
        gy, dx = _rows(grads[0]), x.new_empty(x.shape)
        pieces = x.shape[0] * -(-x.shape[1] // CONV_PIECE)
        part = x.new_empty(pieces, weight.shape[1] + 1, x.shape[2])
        _run_conv(dict(x=x, w=weight, bias=bias, gy=gy, dx=dx, part=part), ctx.reverse, ctx.silu, backward=True)
        sums = part.sum(0)
        return dx, sums[:-1].t().contiguous(), None if bias is None else sums[-1], None, None


def _run_conv(tensors: dict[str, Tensor | None], reverse: bool, silu: bool, *, backward: bool) -> None:
    found = _library()
    assert found is not None
    x, weight = tensors["x"], tensors["w"]
    assert x is not None
    assert weight is not None
    arguments = _ConvArguments()
    _fill(arguments, tensors, ("x", "y", "gy", "dx"))
    arguments.batch, arguments.L, arguments.E = x.shape  # type: ignore[attr-defined]
    arguments.K = weight.shape[1]  # type: ignore[attr-defined]
    arguments.silu, arguments.reverse = int(silu), int(reverse)  # type: ignore[attr-defined]
    found[0].genodiff_conv(ctypes.byref(arguments), int(backward), torch.get_num_threads())


def native_conv_fits(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether `native_conv` can take these tensors."""
    return _fits(x, weight, bias) and x.numel() > 0 and weight.shape[1] <= MAX_TAPS


def native_conv(
    x: Float[Tensor, "B L E"], weight: Float[Tensor, "E K"], bias: Float[Tensor, " E"] | None, reverse: bool, silu: bool
) -> Float[Tensor, "B L E"]:
    """As `causal_conv1d`, for tensors that `native_conv_fits`."""
    return _Conv.apply(x, weight, bias, reverse, silu)
