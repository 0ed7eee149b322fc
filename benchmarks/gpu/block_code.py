"""Every kernel of a block of a network compiled, as a step would launch it, on a machine without a
GPU: a block's step runs on the CPU with kernels that note how they are called and do nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from genodiff.backbones.backbone import PRESETS
from genodiff.kernels import dispatch, library, norm
from genodiff.kernels.triton import launch, mixer, scan, weights

POINTERS = {torch.float32: "*fp32", torch.bfloat16: "*bf16"}
Call = tuple[Any, tuple[Any, ...], dict[str, Any]]  # a kernel, its arguments, its constants


class Noted:
    """In the place of a kernel: `calls` receives each launch."""

    def __init__(self, kernel: Any, calls: list[Call]) -> None:
        self.kernel, self.calls = kernel, calls

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return lambda *given, **constants: self.calls.append((self.kernel, given, constants))


def list_calls(preset: str, low: bool, length: int = 64) -> list[Call]:
    """The launches of one step of a network with two blocks."""
    calls: list[Call] = []
    own = {k: v for k, v in vars(launch.kernels()).items() if hasattr(v, "kernel")}
    noted = {name: Noted(found.kernel, calls) for name, found in own.items()}
    fake = SimpleNamespace(**noted, interpreted=False, T=16, BE=32)
    settings = PRESETS[preset].model_copy(update={"n_layer": 2})
    with ExitStack() as stack:
        for module in (mixer, norm, scan, weights):
            stack.enter_context(mock.patch.object(module, "kernels", return_value=fake))
        stack.enter_context(mock.patch.object(launch, "fits", return_value=True))
        stack.enter_context(mock.patch.object(library, "fits", return_value=False))
        triton_ = dispatch.PROVIDERS["triton"]
        stack.enter_context(mock.patch.object(dispatch, "select_provider", return_value=triton_))
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            logits = settings.build(16)(torch.zeros(2, length, dtype=torch.int64))
        logits.float().sum().backward()
    return calls


def compile_call(call: Call, arch: int) -> Any:
    """The code of a launch."""
    kernel, arguments, constants = call
    constants = dict(constants)
    options = {k: constants.pop(k) for k in ("num_warps", "maxnreg") if k in constants}
    constants.pop("num_stages", None)
    names = [p.name for p in kernel.params]
    given = dict(zip([n for n in names if n not in constants], arguments, strict=True))
    constants |= {
        n: x for n, x in given.items() if isinstance(x, int) and x == 1
    }  # as the JIT does

    def kind_of(name: str) -> str:
        if name in constants:
            return "constexpr"
        value = given[name]
        if isinstance(value, Tensor):
            return POINTERS[value.dtype]
        return "fp32" if isinstance(value, float) else "i32"

    aligned = {
        (i,): [["tt.divisibility", 16]]
        for i, name in enumerate(names)
        if isinstance(x := given.get(name), Tensor) or (isinstance(x, int) and x % 16 == 0)
    }
    source = ASTSource(
        fn=kernel, signature={n: kind_of(n) for n in names}, constexprs=constants, attrs=aligned
    )
    target = GPUTarget("cuda", arch, 32)
    return triton.compile(source, target=target, options=options | {"enable_fp_fusion": True})


def compile_block(preset: str, dtype: str, arch: int) -> Iterator[tuple[str, Any]]:
    """(name, code) of each kernel of a step of this preset, but the scans' own."""
    once: dict[str, Callable[[], Any]] = {}
    for call in list_calls(preset, dtype == "bf16"):
        name, constants = call[0].__name__, call[2]
        flags = " ".join(k for k in ("ADD", "SKIP", "TWICE") if constants.get(k))
        once.setdefault(f"{name} {flags}".strip(), partial(compile_call, call, arch))
    for name, code in once.items():
        if not name.startswith("scan_"):
            yield name, code()
