"""Runs as a process of its own: the scan on the PTX that Triton compiles for sm_90, a warp at a
time in numpy, against the naive scan.

python emulated.py NAME...     prints one JSON line per problem: the relative error of each output
                               and gradient
"""

import json
import sys
from types import SimpleNamespace
from typing import Any

import torch
import triton
from ptx import Memory, Program
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import genodiff.kernels.triton.scan as scan
import genodiff.kernels.triton.scan_jit as kernels
from genodiff.kernels.naive import naive_scan

POINTERS = {torch.float32: "*fp32", torch.bfloat16: "*bf16"}
PROBLEMS: dict[str, dict[str, Any]] = {
    "plain": {"rows": 2, "length": 37, "channels": 40, "states": 3},
    "even": {"rows": 1, "length": 32, "channels": 32, "states": 2},
    "reverse": {"rows": 1, "length": 33, "channels": 36, "states": 2, "reverse": True},
    "split": {"rows": 1, "length": 60, "channels": 33, "states": 2, "split": True},
    "chain": {"rows": 1, "length": 275, "channels": 3, "states": 1, "split": True},
    "groups": {"rows": 2, "length": 33, "channels": 5, "states": 1, "groups": 2},
    "lone": {"rows": 1, "length": 21, "channels": 1, "states": 2},
    "bfloat16": {"rows": 1, "length": 35, "channels": 40, "states": 3, "dtype": torch.bfloat16},
}


class Emulated:
    """A kernel whose launches compile to PTX and run here."""

    def __init__(self, kernel: Any) -> None:
        self.kernel, self.programs = kernel, {}  # type: ignore[var-annotated]

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def launch(*arguments: Any, num_warps: int = 4, **constants: Any) -> None:
            names = [p.name for p in self.kernel.params]
            constants.pop("num_stages", None)
            given = dict(zip([n for n in names if n not in constants], arguments, strict=True))

            def kind_of(name: str) -> str:
                if name in constants:
                    return "constexpr"
                if isinstance(given[name], Tensor):
                    return POINTERS[given[name].dtype]
                return "i64" if name.endswith("_b") or name.startswith("out_") else "i32"

            signature = {n: kind_of(n) for n in names}
            aligned = {
                (i,): [["tt.divisibility", 16]]
                for i, n in enumerate(names)
                if isinstance(given.get(n), Tensor)
            }
            source = ASTSource(
                fn=self.kernel, signature=signature, constexprs=constants, attrs=aligned
            )
            options = {"num_warps": num_warps, "enable_fp_fusion": True}
            compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
            assert not compiled.metadata.shared, (
                "a tile is not a channel per lane: Triton moves it through shared memory"
            )
            program = Program(compiled.asm["ptx"])
            memory = Memory([x for x in given.values() if isinstance(x, Tensor)])
            values = [x.data_ptr() if isinstance(x, Tensor) else x for x in given.values()]
            values += [0] * (
                len(program.parameters) - len(values)
            )  # one or two that Triton adds for scratch
            whole = (*grid, *[1] * (3 - len(grid)))
            for block in torch.cartesian_prod(*(torch.arange(n) for n in whole)).tolist():
                for warp in range(num_warps):
                    program.run(values, memory, tuple(block), whole, warp)  # type: ignore[arg-type]

        return launch


class Direct:
    """A function in a kernel's place."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __getitem__(self, grid: Any) -> Any:
        return self.function


def solve(
    scan_: Any, x: dict[str, Tensor], reverse: bool, gy: Tensor, g_state: Tensor
) -> dict[str, Tensor]:
    x = {name: value.clone().requires_grad_() for name, value in x.items()}
    y, state = scan_(**x, delta_softplus=True, reverse=reverse)
    grads = torch.autograd.grad(
        (y.double() * gy).sum() + (state.double() * g_state).sum(), list(x.values())
    )
    return {"y": y.detach().double(), "state": state.detach().double()} | {
        f"d{n}": g.double() for n, g in zip(x, grads, strict=True)
    }


class Grouped(torch.autograd.Function):
    """The scan of rows in two groups, each with its own A, D and bias, as a mixer calls it."""

    @staticmethod
    def forward(ctx: Any, *x: Tensor) -> Tensor:
        x = (*x[:2], scan.scale_rates(x[2]), *x[3:])
        y, states = scan.scan_forward(*x, softplus=True, reverse=False, keep=True)
        ctx.save_for_backward(*x, states)
        return y

    @staticmethod
    def backward(ctx: Any, gy: Tensor) -> tuple[Tensor, ...]:
        *x, states = ctx.saved_tensors
        found = scan.scan_backward(gy.contiguous(), *x, states, softplus=True, reverse=False)
        return tuple(found[:-1])


def compare_groups(p: dict[str, Any], normal: Any) -> dict[str, float]:
    """Two groups in one launch against a naive scan of each: errors of y and each gradient."""
    b, t, e, n = p["rows"], p["length"], p["channels"], p["states"]
    shapes = {"u": (b, t, e), "delta": (b, t, e), "A": (2, e, n), "B": (b, t, n), "C": (b, t, n)}
    x = {name: normal(*shape) for name, shape in shapes.items()}
    x |= {"D": normal(2, e), "bias": 0.3 * normal(2, e) - 2}
    x["A"] = -torch.exp(x["A"])
    gy = normal(b, t, e)
    got = [v.clone().requires_grad_() for v in x.values()]
    y = Grouped.apply(*got)
    y.backward(gy)
    wanted = [v.double().requires_grad_() for v in x.values()]
    u, delta, A, B, C, D, bias = (v.chunk(2) for v in wanted)
    parts = [
        naive_scan(u[g], delta[g], A[g][0], B[g], C[g], D[g][0], None, bias[g][0], True)[0]
        for g in (0, 1)
    ]
    truth = torch.cat(parts)
    truth.backward(gy.double())
    pairs = [(y, truth), *((a.grad, b.grad) for a, b in zip(got, wanted, strict=True))]
    return {
        name: float((a.detach().double() - b.detach()).norm() / b.detach().norm())
        for name, (a, b) in zip(("y", *(f"d{k}" for k in x)), pairs, strict=True)
    }


def stage(
    B: Tensor, C: Tensor, bc: Tensor, L: int, padded: int, *strides: int, REVERSE: bool, **_: Any
) -> None:
    """As the kernel, which shares memory between warps and is tested by the interpreter alone."""
    bc.zero_()
    x = torch.cat([B, C], 2).transpose(1, 2).float()
    bc[..., :L] = x.flip(2) if REVERSE else x


def unstage(
    dbc: Tensor, dB: Tensor, dC: Tensor, L: int, *numbers: int, REVERSE: bool, **_: Any
) -> None:
    x = dbc.sum(0)[..., :L]
    x = (x.flip(2) if REVERSE else x).transpose(1, 2)
    for to, part in zip((dB, dC), x.chunk(2, 2), strict=True):
        to.copy_(part)


def main() -> None:
    names = [name for name in dir(kernels) if name.startswith("scan_")]
    every = {name: Emulated(getattr(kernels, name)) for name in names} | {
        "stage": Direct(stage),
        "unstage": Direct(unstage),
    }
    scan.kernels = lambda: SimpleNamespace(**every, interpreted=False, T=16, BE=32)  # type: ignore[assignment]
    for name in sys.argv[1:]:
        p = PROBLEMS[name]
        if p.get("split"):
            scan.CHOICES.update(split_below=10**6, split_into=64, least_tiles=1)
        generator = torch.Generator().manual_seed(1)

        def normal(*shape: int, generator: torch.Generator = generator) -> Tensor:
            return torch.randn(*shape, generator=generator)

        if p.get("groups"):
            print(json.dumps({"problem": name} | compare_groups(p, normal)), flush=True)
            continue
        b, t, e, n = p["rows"], p["length"], p["channels"], p["states"]
        x = {"u": normal(b, t, e), "delta": normal(b, t, e), "A": -torch.exp(normal(e, n)),
            "B": normal(b, t, n), "C": normal(b, t, n),
             "D": normal(e), "delta_bias": 0.3 * normal(e) - 2, "h0": normal(b, e, n)}  # fmt: skip
        low = {
            k: v.to(p.get("dtype", torch.float32)) if k in ("u", "delta", "B", "C") else v
            for k, v in x.items()
        }
        gy, g_state = normal(b, t, e).double(), normal(b, e, n).double()
        reverse = p.get("reverse", False)
        truth = solve(naive_scan, {k: v.double() for k, v in low.items()}, reverse, gy, g_state)
        got = solve(scan.triton_scan, low, reverse, gy, g_state)
        print(
            json.dumps(
                {"problem": name}
                | {k: float((got[k] - truth[k]).norm() / truth[k].norm()) for k in truth}
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
