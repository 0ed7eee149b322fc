"""A warp of a GPU in numpy: runs the PTX that Triton compiles, so that what a GPU would execute can
be checked without one.

One warp per program, no shared memory, no branch on which lanes differ; any address outside the
given tensors is an error. `mma` follows the layout of fragments in the PTX manual (m16n8k8, tf32:
operands keep 10 bits of the fraction, the rest is cut off).
"""

import ctypes
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

LANES = 32
Array = np.ndarray[Any, Any]
WIDTH = {"8": np.uint8, "16": np.uint16, "32": np.uint32, "64": np.uint64}
KIND = {"f32": np.float32, "s32": np.int32, "u32": np.uint32, "b32": np.uint32, "s64": np.int64,
    "u64": np.uint64, "b64": np.uint64,
        "b16": np.uint16, "u16": np.uint16, "f64": np.float64}  # fmt: skip


HALF = {"b32": np.uint16, "b64": np.uint32}


class Memory:
    """Tensors by address."""

    def __init__(self, tensors: list[Tensor]) -> None:
        self.spans = []
        for x in tensors:
            size = x.untyped_storage().nbytes()
            start = x.untyped_storage().data_ptr()
            self.spans.append(
                (
                    start,
                    start + size,
                    np.frombuffer((ctypes.c_uint8 * size).from_address(start), np.uint8)
                    if size
                    else None,
                )
            )

    def view(self, addresses: Array, bytes_: int) -> tuple[Array, Array]:
        """The bytes of the tensor that all addresses fall into, and where they are in it."""
        low, high = int(addresses.min()), int(addresses.max()) + bytes_
        for start, stop, data in self.spans:
            if data is not None and start <= low and high <= stop:
                return data, (addresses - np.uint64(start)).astype(np.int64)
        raise IndexError(f"an access from {low:#x} to {high:#x} is in no tensor")


class Program:
    """A parsed kernel."""

    def __init__(self, text: str) -> None:
        self.parameters = re.findall(r"\.param \.(\w+) (?:\.ptr[^,\n]*? )?(\w+_param_\d+)", text)
        self.instructions: list[tuple[str | None, str, str]] = []
        self.labels: dict[str, int] = {}
        body = text[text.index("{", text.index(".entry")) :]
        for line in re.sub(r"//[^\n]*", "", body).splitlines():
            line = line.strip().lstrip("{ ") if not line.strip().endswith("}") else line.strip()
            if line.startswith(".section"):
                break
            if found := re.match(r"(\$\w+):$", line):
                self.labels[found[1]] = len(self.instructions)
            elif line.strip("{}") and not line.startswith("."):
                found = re.fullmatch(r"(@!?[\w%]+\s+)?([\w.]+)\s*(.*);", line)
                assert found, line
                self.instructions.append(
                    (found[1].strip()[1:] if found[1] else None, found[2], found[3].strip())
                )

    def run(
        self,
        arguments: list[int],
        memory: Memory,
        block: tuple[int, int, int],
        grid: tuple[int, int, int],
        warp: int = 0,
    ) -> None:
        """One warp of one program."""
        Warp(self, arguments, memory, block, grid, warp).run()


class Warp:
    """Registers of 32 lanes, 64 bits each."""

    def __init__(
        self,
        program: Program,
        arguments: list[int],
        memory: Memory,
        block: Any,
        grid: Any,
        warp: int,
    ) -> None:
        self.program, self.memory = program, memory
        self.registers: dict[str, Array] = {}
        lanes = np.arange(LANES, dtype=np.uint64)
        self.special = {"%tid.x": lanes + np.uint64(LANES * warp), "%laneid": lanes}
        for i, axis in enumerate("xyz"):
            self.special[f"%ctaid.{axis}"] = np.full(LANES, block[i], np.uint64)
            self.special[f"%nctaid.{axis}"] = np.full(LANES, grid[i], np.uint64)
        self.arguments = {
            name: value for (_, name), value in zip(program.parameters, arguments, strict=True)
        }

    def get(self, name: str, kind: str) -> Array:
        dtype = KIND[kind]
        name = name.strip()
        if name.startswith("0f"):
            bits = np.full(LANES, int(name[2:], 16), np.uint64)
        elif re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", name):
            bits = np.full(LANES, int(name, 0) & (2**64 - 1), np.uint64)
        else:
            bits = self.special[name] if name in self.special else self.registers[name]
        size = np.dtype(dtype).itemsize
        return bits.astype(WIDTH[str(8 * size)]).view(dtype)

    def put(self, name: str, value: Array) -> None:
        value = np.ascontiguousarray(np.broadcast_to(value, (LANES,)))
        self.registers[name.strip()] = value.view(WIDTH[str(8 * value.dtype.itemsize)]).astype(
            np.uint64
        )

    def run(self) -> None:
        at = 0
        with np.errstate(all="ignore"):
            while at < len(self.program.instructions):
                guard, name, rest = self.program.instructions[at]
                at += 1
                active = np.ones(LANES, bool)
                if guard:
                    active = self.registers[guard.lstrip("!")].astype(bool) ^ guard.startswith("!")
                if name.startswith("bra"):
                    assert active.all() or not active.any(), "lanes part ways"
                    at = self.program.labels[rest.strip()] if active.all() else at
                elif name == "ret":
                    return
                elif name.startswith(("ld.global", "st.global")):
                    self._memory(name, rest, active)
                else:
                    assert guard is None, f"{name} under a predicate"
                    self._operate(name, _operands(rest))

    def _memory(self, name: str, rest: str, active: Array) -> None:
        found = re.findall(r"\{([^}]*)\}", rest)[0].split(",")
        address = re.findall(r"\[\s*(%\w+)\s*\+\s*(-?\d+)\s*\]", rest)[0]
        dtype = WIDTH[name.rsplit(".b", 1)[1]]
        size = np.dtype(dtype).itemsize
        where = (self.get(address[0], "s64") + int(address[1])).view(np.uint64)
        if not active.any():
            return
        assert not (where[active] % np.uint64(size * len(found))).any(), "a misaligned access"
        data, index = self.memory.view(where[active], size * len(found))
        for i, register in enumerate(found):
            places = index[:, None] + i * size + np.arange(size)
            if name.startswith("ld"):
                value = (
                    np.zeros(LANES, dtype)
                    if register.strip() not in self.registers
                    else self.get(register, f"b{8 * size}").copy()
                )
                value[active] = data[places].copy().view(dtype)[:, 0]
                self.put(register, value)
            else:
                data[places] = (
                    self.get(register, f"b{8 * size}")[active][:, None]
                    .copy()
                    .view(np.uint8)
                    .reshape(len(index), size)
                )

    def _operate(self, name: str, x: list[str]) -> None:
        parts = name.split(".")
        op, kind = parts[0], parts[-1]
        if op == "mma":
            self._mma(x)
        elif op == "shfl":
            self.put(x[0], self.get(x[1], "b32")[np.arange(LANES) ^ int(x[2])])
        elif op == "ld" and parts[1] == "param":
            self.put(
                x[0], np.full(LANES, self.arguments[x[1].strip("[] ")] & (2**64 - 1), np.uint64)
            )
        elif op == "mov" and x[0].startswith("{"):
            half = HALF[kind]
            bits = self.get(x[1], kind).view(half).reshape(LANES, 2)
            for i, part in enumerate(x[0].strip("{} ").split(",")):
                self.put(part, bits[:, i])
        elif op == "mov" and x[1].startswith("{"):
            halves = [
                self.get(part, f"b{8 * HALF[kind]().itemsize}")
                for part in x[1].strip("{} ").split(",")
            ]
            self.put(x[0], np.stack(halves, 1).view(KIND[kind])[:, 0])
        elif op == "cvt":
            self.put(x[0], self._convert(parts, x[1]))
        elif op == "setp":
            a, b = self.get(x[1], kind), self.get(x[2], kind)
            self.put(x[0], COMPARE[parts[1]](a, b))
        elif op == "selp":
            self.put(
                x[0],
                np.where(
                    self.registers[x[3].strip()].astype(bool),
                    self.get(x[1], kind),
                    self.get(x[2], kind),
                ),
            )
        elif kind == "pred":
            given = (
                np.full(LANES, int(r) != 0)
                if r.lstrip("-").isdigit()
                else self.registers[r].astype(bool)
                for r in x[1:]
            )
            self.put(x[0], LOGIC[op](*given))
        elif op in ("mul", "mad") and parts[1] in ("wide", "hi"):
            wide = np.int64 if kind == "s32" else np.uint64
            product = self.get(x[1], kind).astype(wide) * self.get(x[2], kind).astype(wide)
            if parts[1] == "hi":
                product = (product >> 32).astype(KIND[kind])
            self.put(
                x[0],
                product + self.get(x[3], "s64" if kind == "s32" else "u64")
                if op == "mad"
                else product,
            )
        elif op in ("shl", "shr"):
            shift = np.left_shift if op == "shl" else np.right_shift
            self.put(x[0], shift(self.get(x[1], kind), self.get(x[2], "b32").astype(KIND[kind])))
        else:
            self.put(
                x[0],
                ARITHMETIC[op](*(self.get(operand, kind) for operand in x[1:])).astype(KIND[kind]),
            )

    def _convert(self, parts: list[str], operand: str) -> Array:
        to, source = parts[-2], parts[-1]
        if source == "bf16":
            return (self.get(operand, "b16").astype(np.uint32) << np.uint32(16)).view(np.float32)
        if to == "bf16":
            bits = self.get(operand, "b32")
            return (
                (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))
                >> np.uint32(16)
            ).astype(np.uint16)
        return self.get(operand, source).astype(KIND[to])

    def _mma(self, x: list[str]) -> None:
        group, k = np.divmod(np.arange(LANES), 4)
        a, b, c = (group_.strip("{} ").split(",") for group_ in x[1:4])
        A, B, D = np.zeros((16, 8)), np.zeros((8, 8)), np.zeros((16, 8))
        cut = np.uint32(0xFFFFE000)
        for i, (row, column) in enumerate(((0, 0), (8, 0), (0, 4), (8, 4))):
            A[group + row, k + column] = (self.get(a[i], "b32") & cut).view(np.float32)
        for i, row in enumerate((0, 4)):
            B[k + row, group] = (self.get(b[i], "b32") & cut).view(np.float32)
        for i, (row, column) in enumerate(((0, 0), (0, 1), (8, 0), (8, 1))):
            D[group + row, 2 * k + column] = self.get(c[i], "f32")
        D = (D + A @ B).astype(np.float32)
        for i, (row, column) in enumerate(((0, 0), (0, 1), (8, 0), (8, 1))):
            self.put(x[0].strip("{} ").split(",")[i], D[group + row, 2 * k + column])


COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip
LOGIC: dict[str, Callable[..., Array]] = {
    "mov": lambda a: a, "or": np.logical_or, "and": np.logical_and, "xor": np.logical_xor,
    "not": np.logical_not,
}  # fmt: skip
ARITHMETIC: dict[str, Callable[..., Array]] = {
    "mov": lambda a: a, "add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum,
    "min": np.minimum, "abs": np.abs,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "neg": np.negative,
    "not": np.invert,
    "rem": np.fmod, "div": lambda a, b: a // b,
    "bfe": lambda a, at, bits: (a >> at) & ((a.dtype.type(1) << bits) - a.dtype.type(1)),
    "mad": lambda a, b, c: a * b + c, "ex2": np.exp2, "fma": lambda a, b,
    c: a.astype(np.float64) * b + c,
}  # fmt: skip


def _operands(rest: str) -> list[str]:
    return [part.strip() for part in re.findall(r"\{[^}]*\}|[^,{]+", rest) if part.strip()]
