"""Counts the machine code of the Triton scan kernels for a GPU that need not be there: registers,
spills, instructions per step.

    python benchmarks/gpu/sass.py [--json] [--arch 90] [--d-inner 256 236] [--keep FOLDER]
    python benchmarks/gpu/sass.py --block caduceus-ph-470k [--arch 90]

Triton compiles for sm_90, its cuobjdump takes the result apart. Loops are found by their backward
branches: the innermost runs over the N states of a tile of T steps, the one around it over tiles.
Per step of a channel, a warp's 32 channels at a time, a scheduler issues

    slots = (N · instructions of the inner loop + instructions of the outer loop alone) / T

and its expensive-function unit (MUFU: 2^x, 1/x), which takes 32 lanes in 8 cycles, is busy for 8 ·
(the same count of MUFU) cycles; the load-store path's shuffles (SHFL, a cycle of the whole
multiprocessor) for 4 cycles each. The largest of these bounds the kernel where memory does not.
With `--block PRESET` the other kernels of its step are listed: registers, spills, shared memory.
Exits with 1 if a kernel spills.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.pop("TRITON_INTERPRET", None)

import triton
from block_code import compile_block
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import genodiff.kernels.triton.scan_jit as kernels
from genodiff.kernels.triton.launch import CHOICES

TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
FLOATS = {
    "A2",
    "bc",
    "D",
    "bias",
    "states",
    "spans",
    "carry",
    "dbc",
    "dA",
    "dD",
    "dbias",
    "local",
    "out",
}
LONG = {"bf16": "bfloat16", "fp32": "float32"}
T, BE, N = 16, 32, 16
SMSPS, CLOCK = 132 * 4, 1.755e9  # schedulers of an H100 or H200, and their clock under load


def chosen(name: str, dtype: str) -> dict[str, Any]:
    """The pinned choices of a kernel."""
    return CHOICES.get(name, {}) | CHOICES[LONG[dtype]].get(name, {})


def compiled(name: str, dtype: str, d_inner: int, arch: int, **changes: Any) -> Any:
    """The kernel as `triton/scan.py` launches it: contiguous tensors, a length that T divides."""
    kernel = getattr(kernels, name)
    kind = CHOICES[LONG[dtype]]
    constants: dict[str, Any] = dict(
        E=d_inner, N=N, REVERSE=False, SOFTPLUS=True, EVEN=True, EXACT=kind["EXACT"], ASM=True,
        T=T, BE=BE, SUMS=kind["SUMS"], KEEP=True,
        OUTPUT=True, UNROLL=1, BACK=False, NE=N * d_inner,
    ) | {f"{x}_l": d_inner for x in ("u", "delta", "y", "dy")} | chosen(name,
    dtype) | changes  # fmt: skip
    names = [p.name for p in kernel.params]

    def kind_of(parameter: Any) -> str:
        if parameter.is_constexpr:
            return "constexpr"
        if parameter.name in ("L", "tiles", "group", "segments"):
            return "i32"
        if parameter.name.endswith("_b"):
            return "i64"
        if parameter.name == "bc" and name != "scan_forward":  # as B and C came
            return f"*{dtype}"
        return "*fp32" if parameter.name in FLOATS else f"*{dtype}"

    signature = {p.name: kind_of(p) for p in kernel.params}
    odd = [n for n in names if signature[n] == "constexpr" or n in ("tiles", "group", "segments")]
    aligned = {(i,): [["tt.divisibility", 16]] for i, n in enumerate(names) if n not in odd}
    source = ASTSource(
        fn=kernel,
        signature=signature,
        constexprs={k: v for k, v in constants.items() if k in names},
        attrs=aligned,
    )
    options = {"num_warps": 1, "enable_fp_fusion": True}
    return triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)


def disassembled(cubin: Path) -> tuple[list[tuple[int, str]], dict[str, int]]:
    """(address, instruction) of a kernel, and the numbers that its resource report gives."""

    def tool(*arguments: str) -> str:
        return subprocess.run(
            [TOOLS / "cuobjdump", *arguments, cubin], capture_output=True, text=True, check=True
        ).stdout

    code = [
        (int(at, 16), text.strip())
        for at, text in re.findall(r"^\s+/\*([0-9a-f]{4,5})\*/\s+(.*?;)", tool("-sass"), re.M)
    ]
    return code, {
        name: int(value)
        for name, value in re.findall(
            r"(REG|STACK|SHARED|LOCAL):(\d+)", tool("-res-usage").splitlines()[-1]
        )
    }


def opcode(instruction: str) -> str:
    """An instruction's name without its predicate and its modifiers."""
    return re.sub(r"^@!?U?P\d+\s+", "", instruction).split()[0].split(".")[0].rstrip(";")


def find_load_to_use(loop: list[str]) -> int:
    """The fewest instructions from a load of global memory to the first that reads what it loads.

    The instructions are those of a loop, which begins anew after its last one.
    """
    found = []
    for i, text in enumerate(loop):
        if opcode(text) != "LDG":
            continue
        first = int(re.findall(r"\bR(\d+)", text)[0])
        words = 4 if ".128" in text else 2 if ".64 " in text else 1
        loaded = {f"R{first + k}" for k in range(words)}
        after = [*loop[i + 1 :], *loop[: i + 1]]
        reads = (set(re.findall(r"\bR\d+", other.partition(",")[2])) for other in after)
        found.append(next((k for k, names in enumerate(reads, 1) if names & loaded), len(loop)))
    return min(found, default=len(loop))


def counted(code: list[tuple[int, str]], unroll: int) -> dict[str, Any]:
    """Instructions of the innermost loop, which does `unroll` states, and of the outer one, and
    what follows from them.
    """
    loops = []
    for at, text in code:
        target = re.search(r"\bBRA (?:`\()?0x([0-9a-f]+)", text)
        if target and int(target[1], 16) < at:
            loops.append((int(target[1], 16), at))
    inside = {
        span: collections.Counter(opcode(text) for at, text in code if span[0] <= at <= span[1])
        for span in loops
    }
    outer = max(loops, key=lambda span: span[1] - span[0])
    within = [s for s in loops if s != outer and outer[0] <= s[0] and s[1] <= outer[1]]
    if not within:
        return {}
    inner = max(within, key=lambda span: inside[span]["FMUL"] + inside[span]["FFMA"])
    once = inside[outer] - inside[inner]
    body = [text for at, text in code if inner[0] <= at <= inner[1]]

    def per_step(*names: str) -> float:
        return sum(
            (N / unroll * inside[inner][name] + once[name]) / T
            for name in names or set(inside[outer])
        )

    slots, mufu, shuffles = per_step(), 8 * per_step("MUFU"), 4 * per_step("SHFL")
    bound = max(slots, mufu, shuffles)
    return {
        "inner_loop": sum(inside[inner].values()), "outer_loop_alone": sum(once.values()),
        "load_to_use": find_load_to_use(body), "fetches_per_tile": once["CCTL"],
        "slots_per_step": round(slots, 1),
        "mufu_cycles_per_step": round(mufu, 1), "shuffle_cycles_per_step": round(shuffles, 1),
        "mufu_fraction": round(mufu / bound, 3),
        "bound_gsteps_per_s": round(SMSPS * CLOCK * 32 / bound / 1e9, 1),
        "inner_by_opcode": dict(inside[inner].most_common()),
    }  # fmt: skip


def list_block(preset: str, arch: int, folder: Path) -> int:
    """A JSON line for each kernel of a step but its scans; 1 if any spills."""
    spilt = False
    for dtype in ("bf16", "fp32"):
        for name, code in compile_block(preset, dtype, arch):
            cubin = folder / "block.cubin"
            cubin.write_bytes(code.asm["cubin"])
            instructions, resources = disassembled(cubin)
            spills = sum(opcode(text) in ("LDL", "STL") for _, text in instructions)
            spilt |= bool(spills or resources["STACK"] or resources["LOCAL"])
            row = {"kernel": name, "dtype": dtype, "preset": preset, "spills": spills}
            row |= {"registers": resources["REG"], "shared": resources["SHARED"]}
            print(json.dumps(row | {"stack": resources["STACK"]}), flush=True)
            cubin.unlink()
    return int(spilt)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one object per kernel on stdout")
    parser.add_argument("--arch", type=int, default=90)
    parser.add_argument("--d-inner", type=int, nargs="+", default=[256, 236, 512])
    parser.add_argument("--keep", type=Path, help="a folder for the machine code")
    parser.add_argument("--block", help="the other kernels of a preset's step, as JSON")
    arguments = parser.parse_args()
    folder = arguments.keep or Path(tempfile.gettempdir()) / f"genodiff-sass-{os.getpid()}"
    folder.mkdir(parents=True, exist_ok=True)
    if arguments.block:
        return list_block(arguments.block, arguments.arch, folder)
    variants = [
        ("scan_forward", {}), ("scan_forward", {"OUTPUT": False, "KEEP": False}),
        ("scan_forward", {"OUTPUT": False}), ("scan_carry", {}), ("scan_backward", {}),
        ("scan_backward", {"REVERSE": True}), ("scan_backward", {"SUMS": "plain"}), ("scan_chain",
        {}),
    ]  # fmt: skip
    spilt = False
    if not arguments.json:
        print(
            "| kernel | dtype | d_inner | registers | spills | slots/step | MUFU cycles/step | "
            "SHFL cycles/step | bound, G steps/s |"
        )
        print("|---|---|---|---|---|---|---|---|---|")
    for d_inner in arguments.d_inner:
        for dtype in ("bf16", "fp32"):
            for name, changes in (
                variants if d_inner == arguments.d_inner[0] else variants[:1] + variants[4:5]
            ):
                label = " ".join([name, *(f"{k}={v}" for k, v in changes.items())])
                cubin = folder / f"{name}-{dtype}-{d_inner}-{len(label)}.cubin"
                cubin.write_bytes(
                    compiled(name, dtype, d_inner, arguments.arch, **changes).asm["cubin"]
                )
                code, resources = disassembled(cubin)
                spills = sum(opcode(text) in ("LDL", "STL") for _, text in code)
                spilt |= bool(spills or resources["STACK"] or resources["LOCAL"])
                row = {"triton": triton.__version__, "kernel": label, "dtype": dtype}
                row |= {"d_inner": d_inner, "arch": arguments.arch, "registers": resources["REG"]}
                row |= {"stack": resources["STACK"], "spills": spills}
                row |= {"shared": resources["SHARED"], "instructions": len(code)}
                row |= counted(code, chosen(name, dtype).get("UNROLL", 1))
                if arguments.json:
                    print(json.dumps(row), flush=True)
                else:
                    keys = (
                        "slots_per_step",
                        "mufu_cycles_per_step",
                        "shuffle_cycles_per_step",
                        "bound_gsteps_per_s",
                    )
                    cells = [
                        f"`{label}`",
                        dtype,
                        d_inner,
                        row["registers"],
                        spills,
                        *(row.get(k, "") for k in keys),
                    ]
                    print("| " + " | ".join(map(str, cells)) + " |", flush=True)
                if not arguments.keep:
                    cubin.unlink()
    if not arguments.keep:
        folder.rmdir()
    return int(spilt)


if __name__ == "__main__":
    sys.exit(main())
