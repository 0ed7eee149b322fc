"""Runs as a process of its own: the scan on the PTX that Triton compiles for sm_90, a warp at a
time in numpy, against the naive scan; and all kernels of a block (the norm with the residual sum,
the mixer) against their definitions.

python emulated.py NAME...     prints one JSON line per problem: the relative error of each output
                               and gradient
"""

import json
import struct
import sys
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
import triton
from ptx import Memory, Program
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from genodiff.kernels import norm
from genodiff.kernels.direction import DirectionWeights, ScanInputs, join_weights
from genodiff.kernels.mixer import mixer_by_parts
from genodiff.kernels.naive import run_naively
from genodiff.kernels.triton import mixer, scan, weights
from genodiff.kernels.triton.launch import kernels

POINTERS = {torch.float32: "*fp32", torch.bfloat16: "*bf16"}
PROBLEMS: dict[str, dict[str, Any]] = {
    "plain": {"rows": 2, "length": 37, "channels": 40, "states": 3},
    "even": {"rows": 1, "length": 32, "channels": 32, "states": 2},
    "reverse": {"rows": 1, "length": 33, "channels": 36, "states": 2, "reverse": True},
    "split": {"rows": 1, "length": 60, "channels": 33, "states": 2, "split": True},
    "chain": {"rows": 1, "length": 275, "channels": 3, "states": 1, "split": True},
    "lone": {"rows": 1, "length": 21, "channels": 1, "states": 2},
    "block": {"rows": 1, "length": 33, "width": 118},
    "block-bfloat16": {"rows": 1, "length": 17, "width": 118, "dtype": torch.bfloat16},
    "block-near-one": {"rows": 2, "length": 19, "width": 5, "states": 2, "near_one": True},
    "block-near-one-wide": {"rows": 1, "length": 19, "width": 118, "states": 2, "near_one": True,
                            "recompute": True},
    "near-one": {"rows": 1, "length": 33, "channels": 118, "states": 2, "bias": -9},
    "near-one-wide": {"rows": 1, "length": 33, "channels": 236, "states": 2, "bias": -9},
    "block-of-one": {"rows": 1, "length": 1, "width": 118, "states": 2},
    "bfloat16": {"rows": 1, "length": 35, "channels": 40, "states": 3, "dtype": torch.bfloat16},
}  # fmt: skip


# The kernels that go through time. `scan_chain`, a scan over segments, may move tiles.
CHANNEL_PER_LANE = ("scan_carry", "scan_forward", "scan_backward")


class Emulated:
    """A kernel whose launches compile to PTX and run here."""

    def __init__(self, kernel: Any) -> None:
        self.kernel, self.programs = kernel, {}  # type: ignore[var-annotated]

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def launch(*arguments: Any, num_warps: int = 4, **constants: Any) -> None:
            names = [p.name for p in self.kernel.params]
            constants.pop("num_stages", None)
            given = dict(zip([n for n in names if n not in constants], arguments, strict=True))
            ones = [n for n, x in given.items() if isinstance(x, int) and x == 1]
            constants |= {n: given.pop(n) for n in ones}  # as the JIT does

            def kind_of(name: str) -> str:
                if name in constants:
                    return "constexpr"
                if isinstance(given[name], Tensor):
                    return POINTERS[given[name].dtype]
                if isinstance(given[name], float):
                    return "fp32"
                return "i64" if name.endswith("_b") else "i32"

            signature = {n: kind_of(n) for n in names}
            aligned = {
                (i,): [["tt.divisibility", 16]]
                for i, n in enumerate(names)
                if isinstance(x := given.get(n), Tensor) or (isinstance(x, int) and x % 16 == 0)
            }
            source = ASTSource(
                fn=self.kernel, signature=signature, constexprs=constants, attrs=aligned
            )
            options = {"num_warps": num_warps, "enable_fp_fusion": True}
            compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
            shared = compiled.metadata.shared
            assert not (shared and self.kernel.__name__ in CHANNEL_PER_LANE), (
                "a tile is not a channel per lane: Triton moves it through shared memory"
            )
            program = Program(compiled.asm["ptx"])
            memory = Memory([x for x in given.values() if isinstance(x, Tensor)])
            values = [to_bits(x) for x in given.values()]
            # Triton adds one or two for scratch.
            values += [0] * (len(program.parameters) - len(values))
            whole = (*grid, *[1] * (3 - len(grid)))
            for block in torch.cartesian_prod(*(torch.arange(n) for n in whole)).tolist():
                program.run(values, memory, tuple(block), whole, num_warps, shared)  # type: ignore[arg-type]

        return launch


def to_bits(x: Any) -> int:
    """What a kernel is given for an argument."""
    if isinstance(x, Tensor):
        return x.data_ptr()
    return struct.unpack("I", struct.pack("f", x))[0] if isinstance(x, float) else x


def solve(
    scan_: Any, x: dict[str, Tensor], reverse: bool, gy: Tensor, g_state: Tensor
) -> dict[str, Tensor]:
    x = {name: value.clone().requires_grad_() for name, value in x.items()}
    y, state = scan_(ScanInputs(*x.values()), True, reverse)
    grads = torch.autograd.grad(
        (y.double() * gy).sum() + (state.double() * g_state).sum(), list(x.values())
    )
    return {"y": y.detach().double(), "state": state.detach().double()} | {
        f"d{n}": g.double() for n, g in zip(x, grads, strict=True)
    }


def compare_scan(p: dict[str, Any], normal: Any) -> dict[str, float]:
    """Errors of a scan's outputs and gradients."""
    b, t, e, n = p["rows"], p["length"], p["channels"], p["states"]
    x = {"u": normal(b, t, e), "delta": normal(b, t, e), "A": -torch.exp(normal(e, n)),
         "B": normal(b, t, n), "C": normal(b, t, n), "D": normal(e),
         "delta_bias": 0.3 * normal(e) + p.get("bias", -2), "h0": normal(b, e, n)}  # fmt: skip
    low = p.get("dtype", torch.float32)
    x |= {k: x[k].to(low) for k in ("u", "delta", "B", "C")}
    flow = normal(b, t, e).double(), normal(b, e, n).double()
    reverse = p.get("reverse", False)
    truth = solve(run_naively, {k: v.double() for k, v in x.items()}, reverse, *flow)
    found = solve(scan.triton_scan, x, reverse, *flow)
    return {k: float((found[k] - truth[k]).norm() / truth[k].norm()) for k in truth}


def draw_block(p: dict[str, Any], normal: Any) -> dict[str, Tensor]:
    """The inputs of a block: residual stream, what is added to it, weights."""
    d, n = p["width"], p.get("states", 4)
    e, rank, shape = 2 * d, -(-d // 16), (p["rows"], p["length"], d)
    x = {"residual": normal(*shape), "added": normal(*shape), "norm": 1 + normal(d) / 4}
    x |= {"w_in": normal(2 * e, d) / d**0.5, "w_out": normal(d, e) / e**0.5}
    for i in (0, 1):
        x |= {f"conv_weight{i}": normal(e, 4) / 2, f"conv_bias{i}": normal(e) / 2}
        x |= {f"x_weight{i}": normal(rank + 2 * n, e) / e**0.5, f"dt_weight{i}": normal(e, rank)}
        x |= {f"dt_bias{i}": normal(e) - (9 if p.get("near_one") else 3)}
        x |= {f"A{i}": -torch.exp(normal(e, n)), f"D{i}": normal(e)}
    return x


def solve_block(
    x: dict[str, Tensor], gy: Tensor, triton_: bool, low: bool, recompute: bool = False
) -> dict[str, Tensor]:
    """A block of a network: its residual stream, and all gradients."""
    x = {k: v.clone().requires_grad_() for k, v in x.items()}
    names = ("conv_weight", "conv_bias", "x_weight", "dt_weight", "dt_bias", "A", "D")
    ways = [DirectionWeights(*(x[f"{name}{i}"] for name in names)) for i in (0, 1)]
    given = (x["w_in"], None, x["w_out"])
    with torch.autocast("cpu", torch.bfloat16, enabled=low):
        if triton_:
            total, y = norm.AddNorm.apply(x["residual"], x["added"], x["norm"], 1e-5)
            y = mixer.triton_mixer(y, *given, None, (False, True), join_weights(ways), recompute)
            y = y.float() + norm.AddNorm.apply(total, None, x["norm"], 1e-5).float()
        else:
            total, d = x["residual"] + x["added"], x["norm"].shape
            y = F.rms_norm(total, d, x["norm"], 1e-5)
            y = mixer_by_parts(y, *given, ways, (False, True)) + y
    out = total + y
    grads = torch.autograd.grad((out.double() * gy).sum(), list(x.values()))
    return {"out": out.detach().double()} | {
        f"d{k}": g.double() for k, g in zip(x, grads, strict=True)
    }


def compare_block(p: dict[str, Any], normal: Any) -> dict[str, float]:
    """Errors of a block's output and gradients."""
    x = draw_block(p, normal)
    gy, low = normal(p["rows"], p["length"], p["width"]).double(), "dtype" in p
    truth = solve_block({k: v.double() for k, v in x.items()}, gy, False, False)
    found = solve_block(x, gy, True, low, p.get("recompute", False))
    # Nothing passes a decay in a window of one position: the gradient of A is exactly 0 there.
    sizes = {k: float(v.norm()) or 1.0 for k, v in truth.items()}
    return {k: float((found[k] - truth[k]).norm()) / sizes[k] for k in truth}


def main() -> None:
    every = {
        name: Emulated(found.kernel)
        for name, found in vars(kernels()).items()
        if hasattr(found, "kernel")
    }
    emulated = SimpleNamespace(**every, interpreted=False, T=16, BE=32)
    for module in (mixer, norm, scan, weights):
        module.kernels = lambda: emulated  # type: ignore[assignment]
    pinned, split = dict(scan.CHOICES), {"split_below": 10**6, "split_into": 64, "least_tiles": 1}
    for name in sys.argv[1:]:
        p = PROBLEMS[name]
        scan.CHOICES.update(split if p.get("split") else pinned)
        generator = torch.Generator().manual_seed(1)

        def normal(*shape: int, generator: torch.Generator = generator) -> Tensor:
            return torch.randn(*shape, generator=generator)

        compare = compare_block if "width" in p else compare_scan
        print(json.dumps({"problem": name} | compare(p, normal)), flush=True)


if __name__ == "__main__":
    main()
