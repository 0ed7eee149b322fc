"""PyTorch's zip archives read as data: the pickle inside is interpreted, never run.

A pickle is a program for a stack machine. The machine here knows plain values, tensors and nothing
else: whatever class or function the program names becomes an inert `Opaque` that keeps its
arguments. No module is imported, nothing is called, no storage is read until a tensor that has been
judged is asked for. Older formats (a bare pickle, a tar) are refused.
"""

import pickletools
import zipfile
from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from genodiff.errors import CheckpointError

_LARGEST_PICKLE = 64 << 20
_MOST_MEMBERS = 1 << 17
_STORAGES = {
    "DoubleStorage": torch.float64, "FloatStorage": torch.float32, "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64, "IntStorage": torch.int32, "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}  # fmt: skip
_DTYPES = set(
    "float64 double float32 float float16 half bfloat16 int64 long int32 int uint8 bool".split()
)
_SAVE_AGAIN = "save the weights as safetensors, or again with a newer torch.save"
DAMAGED = "use an undamaged file"
_NO_PICKLE = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError,
    ValueError,
)  # fmt: skip
"""What a pickle that is damaged or hostile makes its interpreter raise."""


class Stored(NamedTuple):
    """A tensor that lies in the archive: which storage, and where in it."""

    key: str
    dtype: torch.dtype
    numel: int  # of the storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


class Opaque:
    """A class or function that the pickle names and that is not known here, with its arguments."""

    def __init__(self, name: str, args: Any = ()) -> None:
        self.name, self.args = name, args
        self.state: Any = None
        self.entries: dict[Any, Any] = {}


_MARK = object()  # below the items of a list, a tuple or a mapping on the stack


class Archive:
    """A judged archive: plain values with `Stored` tensors, which are read on demand."""

    def __init__(self, path: Path, real: Path) -> None:
        """Read names, sizes and pickle of the archive at `real`; messages call it `path`.

        Raises `CheckpointError`.
        """
        self.path, self._real = path, real
        try:
            with zipfile.ZipFile(real) as archive:
                members = self._judge(archive, real.stat().st_size)
                raw = archive.read(members["data.pkl"])
                order = archive.read(members["byteorder"]) if "byteorder" in members else b"little"
        except (zipfile.BadZipFile, OSError, EOFError, ValueError, RuntimeError) as fault:
            what = f"is no sound PyTorch archive: truncated or corrupt ({fault})"
            raise self._fault(what) from None
        if order.strip() != b"little":
            raise self._fault("holds numbers that are not little-endian", _SAVE_AGAIN)
        self._members = members
        try:
            self.content = _Machine(self).run(pickletools.genops(raw))
        except _NO_PICKLE as fault:
            what = "its description is no pickle of weights: corrupt or refused "
            raise self._fault(f"{what}({type(fault).__name__}: {str(fault)[:80]})") from None

    def _judge(self, archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
        entries = archive.infolist()
        if not entries or len(entries) > _MOST_MEMBERS:
            raise self._fault(f"has {len(entries)} members: not an archive of torch.save")
        top = entries[0].filename.split("/")[0]
        members: dict[str, zipfile.ZipInfo] = {}
        for entry in entries:
            first, _, rest = entry.filename.partition("/")
            if first != top or not rest or ".." in rest.split("/") or rest in members:
                what = f"holds '{entry.filename}', which torch.save does not write: refused"
                raise self._fault(what)
            plain = entry.compress_type == zipfile.ZIP_STORED and not entry.flag_bits & 1
            if not plain or entry.file_size != entry.compress_size:
                what = f"holds '{entry.filename}' compressed or encrypted"
                raise self._fault(f"{what}, which torch.save does not do: refused")
            members[rest] = entry
        if sum(entry.file_size for entry in entries) > size:
            raise self._fault("has members that overlap: corrupt")
        if "data.pkl" not in members:
            raise self._fault("holds no data.pkl: not an archive of torch.save")
        if members["data.pkl"].file_size > _LARGEST_PICKLE:
            what = f"has a description of {members['data.pkl'].file_size} bytes"
            raise self._fault(f"{what}, more than {_LARGEST_PICKLE}")
        return members

    def stored(self, storage: Any, offset: Any, shape: Any, stride: Any) -> Stored:
        """The tensor of these numbers, if it lies within its storage.

        Raises `CheckpointError`.
        """
        key, dtype, numel = storage
        numbers = [offset, *shape, *stride]
        sound = all(type(n) is int and 0 <= n < 1 << 48 for n in numbers)
        if len(shape) != len(stride) or not sound:
            raise self._fault("describes a tensor with a shape that is none: corrupt")
        member = self._members.get(f"data/{key}")
        if member is None or member.file_size != numel * dtype.itemsize:
            what = f"the storage '{key}' is missing, or not {numel} numbers of {dtype} large"
            raise self._fault(f"{what}: truncated or corrupt")
        last = offset + sum((n - 1) * step for n, step in zip(shape, stride, strict=True))
        if prod(shape) > numel or (prod(shape) and last >= numel):
            what = f"describes a tensor of shape {list(shape)}"
            raise self._fault(f"{what} that its storage of {numel} numbers cannot hold")
        return Stored(key, dtype, numel, offset, tuple(shape), tuple(stride))

    def tensor(self, stored: Stored) -> Tensor:
        """The numbers themselves, a tensor of its own."""
        try:
            with zipfile.ZipFile(self._real) as archive:
                raw = bytearray(archive.read(self._members[f"data/{stored.key}"]))
        except (zipfile.BadZipFile, OSError, EOFError) as fault:
            raise self._fault(f"storage '{stored.key}' cannot be read: corrupt ({fault})") from None
        if not raw:
            return torch.empty(stored.shape, dtype=stored.dtype)
        flat = torch.frombuffer(raw, dtype=stored.dtype)
        return flat.as_strided(stored.shape, stored.stride, stored.offset).clone()

    def _fault(self, what: str, fix: str = DAMAGED) -> CheckpointError:
        return CheckpointError(what, file=self.path, fix=fix)


class _Machine:
    """The stack machine, without the power to call anything."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self, program: Iterator[tuple[Any, Any, int | None]]) -> Any:
        for op, arg, _ in program:
            if op.name == "STOP":
                (value,) = self.stack
                return value
            if op.name in _VALUES:
                self.stack.append(_VALUES[op.name](self, arg))
            elif op.name in _LITERALS:
                self.stack.append(arg)
            elif op.name in _CHANGES:
                _CHANGES[op.name](self, arg)
            elif op.name not in ("PROTO", "FRAME"):
                raise ValueError(f"the instruction {op.name} is not known here")
        raise ValueError("the pickle does not end")

    def pop_marked(self) -> list[Any]:
        at = max(i for i, value in enumerate(self.stack) if value is _MARK)
        items = self.stack[at + 1 :]
        del self.stack[at:]
        return items

    def pop(self, n: int) -> tuple[Any, ...]:
        items = tuple(self.stack[-n:])
        if len(items) < n:
            raise IndexError("the stack is empty")
        del self.stack[-n:]
        return items

    def remember(self, index: int) -> None:
        self.memo[index] = self.stack[-1]

    def extend(self, items: Any) -> None:
        if type(self.stack[-1]) is list:
            self.stack[-1].extend(items)
        elif not isinstance(self.stack[-1], Opaque):
            raise TypeError("items for something that is no list")

    def set(self, items: Any) -> None:
        into = self.stack[-1]
        entries = into.entries if isinstance(into, Opaque) else into
        if type(entries) is not dict:
            raise TypeError("entries for something that is no mapping")
        entries |= dict(zip(items[::2], items[1::2], strict=True))

    def build(self) -> None:
        (state,) = self.pop(1)
        if isinstance(self.stack[-1], Opaque):
            self.stack[-1].state = state

    def find_storage(self) -> tuple[str, torch.dtype, int]:
        ((kind, storage, key, _place, numel),) = self.pop(1)
        name = _name(storage).rpartition(".")[2]
        known = kind == "storage" and (name in _STORAGES or name == "UntypedStorage")
        if not known or type(key) is not str or type(numel) is not int:
            raise ValueError(f"a storage of the kind {name!r}")
        return key, _STORAGES.get(name, torch.uint8), numel

    def make(self, function: Any, args: Any) -> Any:
        name = _name(function)
        if name == "torch._utils._rebuild_tensor_v2":
            return self.archive.stored(*args[:4])
        if name == "torch._utils._rebuild_tensor_v3":
            (key, _, size), (*where, _grad, _hooks, kind) = args[0], args[1:7]
            found = _name(kind).rpartition(".")[2]
            if found not in _DTYPES:
                raise ValueError(f"a tensor of the type {found!r}")
            dtype: torch.dtype = getattr(torch, found)
            return self.archive.stored((key, dtype, size // dtype.itemsize), *where)
        if name in ("torch._utils._rebuild_parameter", "torch.nn.parameter.Parameter"):
            return args[0]
        if name == "collections.OrderedDict" and not args:
            return {}
        if name == "_codecs.encode" and args[1] == "latin1":
            return str(args[0]).encode("latin1")
        if name == "torch.Size":
            return tuple(args[0])
        return Opaque(name, args)


def _name(value: Any) -> str:
    if not isinstance(value, Opaque):
        raise TypeError("a call of something that has no name")
    return value.name


_Step = Callable[[_Machine, Any], Any]
_VALUES: dict[str, _Step] = {
    "NONE": lambda m, _: None,
    "NEWTRUE": lambda m, _: True,
    "NEWFALSE": lambda m, _: False,
    "EMPTY_DICT": lambda m, _: {},
    "EMPTY_LIST": lambda m, _: [],
    "EMPTY_TUPLE": lambda m, _: (),
    "EMPTY_SET": lambda m, _: [],
    "MARK": lambda m, _: _MARK,
    "DUP": lambda m, _: m.stack[-1],
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), lambda m, index: m.memo[index]),
    "TUPLE": lambda m, _: tuple(m.pop_marked()),
    "TUPLE1": lambda m, _: m.pop(1),
    "TUPLE2": lambda m, _: m.pop(2),
    "TUPLE3": lambda m, _: m.pop(3),
    "LIST": lambda m, _: m.pop_marked(),
    "DICT": lambda m, _: (lambda of: dict(zip(of[::2], of[1::2], strict=True)))(m.pop_marked()),
    "GLOBAL": lambda m, name: Opaque(name.replace(" ", ".")),
    "STACK_GLOBAL": lambda m, _: Opaque("{}.{}".format(*m.pop(2))),
    "REDUCE": lambda m, _: m.make(*m.pop(2)),
    "NEWOBJ": lambda m, _: m.make(*m.pop(2)),
    "NEWOBJ_EX": lambda m, _: (lambda kind, args, _: Opaque(_name(kind), args))(*m.pop(3)),
    "OBJ": lambda m, _: (lambda kind, *args: Opaque(_name(kind), args))(*m.pop_marked()),
    "BINPERSID": lambda m, _: m.find_storage(),
}
"""Instructions that put a value on the stack; none of them calls anything."""
_CHANGES: dict[str, _Step] = {
    "POP": lambda m, _: m.pop(1),
    "POP_MARK": lambda m, _: m.pop_marked(),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), _Machine.remember),
    "MEMOIZE": lambda m, _: m.remember(len(m.memo)),
    "APPEND": lambda m, _: m.extend(m.pop(1)),
    **dict.fromkeys(("APPENDS", "ADDITEMS"), lambda m, _: m.extend(m.pop_marked())),
    "SETITEM": lambda m, _: m.set(m.pop(2)),
    "SETITEMS": lambda m, _: m.set(m.pop_marked()),
    "BUILD": lambda m, _: m.build(),
}
_LITERALS = {
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING",
    "BINSTRING", "SHORT_BINSTRING",
    "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8", "UNICODE", "SHORT_BINUNICODE",
    "BINUNICODE", "BINUNICODE8",
}  # fmt: skip
