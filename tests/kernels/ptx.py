"""A warp of a GPU in numpy: runs the PTX that Triton compiles, so that what a GPU would execute can
be checked without one.

The warps of a program take turns: each runs to the next barrier. No branch on which lanes differ;
any address outside the given tensors, or outside the shared memory, is an error. `mma`, `ldmatrix`
and `stmatrix` follow the layout of fragments in the PTX manual (mma: m16n8k8, tf32: operands keep
10 bits of the fraction, the rest is cut off).
"""

import ctypes
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from torch import Tensor

LANES = 32
Array = np.ndarray[Any, Any]
Place = tuple[int, int, int]
WIDTH = {"8": np.uint8, "16": np.uint16, "32": np.uint32, "64": np.uint64}
KIND = {
    "f32": np.float32, "f64": np.float64, "b16": np.uint16, "b32": np.uint32, "b64": np.uint64,
    "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "s16": np.int16, "s32": np.int32,
    "s64": np.int64,
}  # fmt: skip
HALF = {"b32": np.uint16, "b64": np.uint32}


class Memory:
    """Tensors by address."""

    def __init__(self, tensors: list[Tensor]) -> None:
        self.spans = []
        for storage in (x.untyped_storage() for x in tensors):
            start, size = storage.data_ptr(), storage.nbytes()
            if size:
                data = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(start))
                self.spans.append((start, start + size, data))

    def view(self, addresses: Array, bytes_: int) -> tuple[Array, Array]:
        """The bytes of the tensor that all addresses fall into, and where they are in it."""
        low, high = int(addresses.min()), int(addresses.max()) + bytes_
        for start, stop, data in self.spans:
            if start <= low and high <= stop:
                return data, (addresses - np.uint64(start)).astype(np.int64)
        raise IndexError(f"an access from {low:#x} to {high:#x} is in no tensor")


class Program:
    """A parsed kernel."""

    def __init__(self, text: str) -> None:
        self.parameters = re.findall(r"\.param \.(\w+) (?:\.ptr[^,\n]*? )?(\w+_param_\d+)", text)
        self.instructions: list[tuple[str | None, str, str]] = []
        self.labels: dict[str, int] = {}
        self.tables = {
            name: re.findall(r"\$\w+", labels)
            for name, labels in re.findall(r"(\$?\w+):\s*\.branchtargets([^;]*);", text)
        }
        text = re.sub(r"\$?\w+:\s*\.branchtargets[^;]*;", "", text)
        body = text[text.index("{", text.index(".entry")) :]
        # Triton 3.8 names the block's own shared memory; another block's would be ::cluster.
        for line in re.sub(r"//[^\n]*|::cta\b", "", body).splitlines():
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
        self, values: list[int], memory: Memory, block: Place, grid: Place, warps: int, shared: int
    ) -> None:
        """One program of so many warps and bytes of shared memory."""
        near = np.zeros(shared, np.uint8)
        where = (memory, near, block, grid)
        running = [Warp(self, values, *where, warp).run() for warp in range(warps)]
        while running:
            arrived = [next(warp, None) for warp in running]
            assert len(set(arrived)) == 1, "some warps wait at a barrier, others have ended"
            running = running if arrived[0] else []


class Warp:
    """Registers of 32 lanes, 64 bits each."""

    def __init__(
        self, program: Program, values: list[int], memory: Memory, shared: Array, block: Place,
        grid: Place, warp: int,
    ) -> None:  # fmt: skip
        self.program, self.memory, self.shared = program, memory, shared
        self.registers: dict[str, Array] = {}
        lanes = np.arange(LANES, dtype=np.uint64)
        self.special = {"%tid.x": lanes + np.uint64(LANES * warp), "%laneid": lanes}
        self.special["global_smem"] = np.zeros(LANES, np.uint64)
        for i, axis in enumerate("xyz"):
            self.special[f"%ctaid.{axis}"] = np.full(LANES, block[i], np.uint64)
            self.special[f"%nctaid.{axis}"] = np.full(LANES, grid[i], np.uint64)
        names = [name for _, name in program.parameters]
        self.arguments = dict(zip(names, values, strict=True))
        for i, name in enumerate(self.arguments):  # the addresses of parameters
            self.special[name] = np.full(LANES, 8 * i, np.uint64)

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

    def run(self) -> Iterator[bool]:
        """Run; stops at each barrier."""
        at = 0
        while at < len(self.program.instructions):
            guard, name, rest = self.program.instructions[at]
            at += 1
            active = np.ones(LANES, bool)
            if guard:
                active = self.registers[guard.lstrip("!")].astype(bool) ^ guard.startswith("!")
            if name.startswith("bra"):
                assert active.all() or not active.any(), "lanes part ways"
                at = self.program.labels[rest.strip()] if active.all() else at
            elif name == "brx.idx":
                register, table = _operands(rest)
                (to,) = set(self.get(register, "u32").tolist())
                at = self.program.labels[self.program.tables[table][to]]
            elif name == "bar.sync":
                yield True
            elif name == "ret":
                return
            elif name.startswith(("ldmatrix", "stmatrix")):
                self._matrix(name, rest)
            elif name.startswith(("ld.global", "st.global", "ld.shared", "st.shared")):
                self._memory(name, rest, active)
            elif name.startswith("prefetch.global"):
                self.memory.view(self._address(rest, "s64").view(np.uint64), 1)  # that is there
            elif name != "bar.warp.sync":
                assert guard is None, f"{name} under a predicate"
                with np.errstate(all="ignore"):
                    self._operate(name, _operands(rest))

    def _address(self, text: str, kind: str) -> Array:
        name, offset = re.findall(r"\[\s*([%\w]+)\s*(?:\+\s*(-?\d+))?\s*\]", text)[0]
        return self.get(name, kind).astype(np.int64) + int(offset or 0)

    def _memory(self, name: str, rest: str, active: Array) -> None:
        operands = re.sub(r"\[[^]]*\],?", "", rest).strip(" ,{}")
        found = [register.strip() for register in operands.split(",")]
        dtype = WIDTH[name.rsplit(".b", 1)[1]]
        size = np.dtype(dtype).itemsize
        near = ".shared" in name
        where = self._address(rest, "u32" if near else "s64")
        if not active.any():
            return
        assert not (where[active] % (size * len(found))).any(), "a misaligned access"
        if near:
            data, index = self.shared, where[active]
            assert index.min() >= 0, "an access before the shared memory"
            assert index.max() + size * len(found) <= len(data), "an access after it"
        else:
            data, index = self.memory.view(where[active].view(np.uint64), size * len(found))
        for i, register in enumerate(found):
            places = index[:, None] + i * size + np.arange(size)
            if name.startswith("ld"):
                value = np.zeros(LANES, dtype)
                if register in self.registers:
                    value = self.get(register, f"b{8 * size}").copy()
                value[active] = data[places].copy().view(dtype)[:, 0]
                self.put(register, value)
            else:
                value = self.get(register, f"b{8 * size}")[active]
                data[places] = value[:, None].copy().view(np.uint8).reshape(len(index), size)

    def _matrix(self, name: str, rest: str) -> None:
        """Matrices of 8 × 8 numbers of 16 bits: lane 8 m + r has the address of row r of the m-th.

        Register m of lane l is row l/4, columns 2 (l%4) and the next; with .trans, of its turn.
        """
        names = re.findall(r"\{([^}]*)\}", rest)[0].split(",")
        rows = self._address(rest, "u32")[: 8 * len(names)].reshape(-1, 8)
        assert not (rows % 16).any(), "a misaligned row of a matrix"
        lane = np.arange(LANES)
        row, column = lane // 4, 2 * (lane % 4)
        for register, at in zip(names, rows, strict=True):
            places = at[:, None] + np.arange(16)
            assert places.min() >= 0, "a matrix before the shared memory"
            assert places.max() < len(self.shared), "a matrix after it"
            if name.startswith("ldmatrix"):
                tile = self.shared[places].view(np.uint16)
                tile = tile.T if ".trans" in name else tile
                pair = np.stack([tile[row, column], tile[row, column + 1]], 1)
                self.put(register, np.ascontiguousarray(pair).view(np.uint32)[:, 0])
            else:
                pair = self.get(register, "b32").view(np.uint16).reshape(LANES, 2)
                tile = np.zeros((8, 8), np.uint16)
                tile[row, column], tile[row, column + 1] = pair[:, 0], pair[:, 1]
                tile = np.ascontiguousarray(tile.T if ".trans" in name else tile)
                self.shared[places] = tile.view(np.uint8)

    def _operate(self, name: str, x: list[str]) -> None:
        parts = name.split(".")
        op, kind = parts[0], parts[-1]
        if op == "mma":
            self._mma(x)
        elif op == "shfl":
            other = self.get(x[2], "b32").astype(np.int64)
            source = np.arange(LANES) ^ other if parts[2] == "bfly" else other % LANES
            assert parts[2] in ("bfly", "idx")
            self.put(x[0], self.get(x[1], "b32")[source])
        elif op == "ld" and parts[1] == "param":
            place = x[1].strip("[] ")
            if place not in self.arguments:  # chosen by an address
                (at,) = set(self._address(x[1], "u64").tolist())
                place = list(self.arguments)[at // 8]
            self.put(x[0], np.full(LANES, self.arguments[place] & (2**64 - 1), np.uint64))
        elif op == "mov" and x[0].startswith("{"):
            half = HALF[kind]
            bits = self.get(x[1], kind).view(half).reshape(LANES, 2)
            for i, part in enumerate(x[0].strip("{} ").split(",")):
                self.put(part, bits[:, i])
        elif op == "mov" and x[1].startswith("{"):
            narrow = f"b{8 * HALF[kind]().itemsize}"
            halves = [self.get(part, narrow) for part in x[1].strip("{} ").split(",")]
            self.put(x[0], np.stack(halves, 1).view(KIND[kind])[:, 0])
        elif op == "cvt":
            self.put(x[0], self._convert(parts, *x[1:]))
        elif op == "setp":
            a, b = self.get(x[1], kind), self.get(x[2], kind)
            self.put(x[0], COMPARE[parts[1]](a, b))
        elif op == "selp":
            first = self.registers[x[3].strip()].astype(bool)
            self.put(x[0], np.where(first, self.get(x[1], kind), self.get(x[2], kind)))
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
                product = (product >> wide(kind[1:])).astype(KIND[kind])
            if op == "mad":
                product = product + self.get(x[3], "s64" if kind == "s32" else "u64")
            self.put(x[0], product)
        elif op in ("shl", "shr"):
            shift = np.left_shift if op == "shl" else np.right_shift
            self.put(x[0], shift(self.get(x[1], kind), self.get(x[2], "b32").astype(KIND[kind])))
        else:
            given = (self.get(operand, kind) for operand in x[1:])
            self.put(x[0], ARITHMETIC[op](*given).astype(KIND[kind]))

    def _convert(self, parts: list[str], operand: str, low: str | None = None) -> Array:
        to, source = parts[-2], parts[-1]
        if to == "bf16x2":
            assert low is not None
            pair = [self._convert(["cvt", "rn", "bf16", "f32"], x) for x in (low, operand)]
            return np.stack(pair, 1).view(np.uint32)[:, 0]
        if source == "bf16":
            return (self.get(operand, "b16").astype(np.uint32) << np.uint32(16)).view(np.float32)
        if to == "bf16":
            bits, half = self.get(operand, "b32"), np.uint32(16)
            odd = (bits >> half) & np.uint32(1)
            return ((bits + np.uint32(0x7FFF) + odd) >> half).astype(np.uint16)
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
    "rem": np.fmod, "div": lambda a, b: a / b if a.dtype.kind == "f" else a // b, "sqrt": np.sqrt,
    # A field of bits; that of a signed number takes the sign of its own highest bit.
    "bfe": lambda a, at, bits: (a << (8 * a.itemsize - at - bits)) >> (8 * a.itemsize - bits),
    "mad": lambda a, b, c: a * b + c, "ex2": np.exp2, "fma": lambda a, b,
    c: a.astype(np.float64) * b + c,
}  # fmt: skip


def _operands(rest: str) -> list[str]:
    return [part.strip() for part in re.findall(r"\{[^}]*\}|[^,{]+", rest) if part.strip()]
