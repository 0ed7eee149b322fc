"""The C library of the CPU kernels (`native/`): load it, refuse a stale one, call it with tensors.

It is built when genodiff is installed, where there is a compiler; `find_missing` says what is
missing. It needs no compiler, and no headers, to run, and serves every Python. There is a copy for
each instruction set; the processor decides at run time.

Importing this module does not import torch. Without torch, threads are POSIX threads, as many as
`set_threads` says; with it, they are those of torch's OpenMP.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from itertools import count, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Part = TypeVar("Part")
Result = TypeVar("Result")
INTERFACE = 0x30A5FFBE  # its checksum: the library of another source is refused
_MOST_THREADS = max(8, os.cpu_count() or 1)  # whoever set torch's: thousands end the process
BUILD = "install a C compiler (gcc or clang), then install genodiff again"
# How kernels divide their work into tasks, for threads to take. Sizes depend on shapes alone, and
# partial sums are added in the order of the tasks: the same bits for any number of threads.
PIECE = 256  # least rows (or time steps) of a task
SUM_PIECE = 1024  # the same where a task also sums a share of a weight's gradient
SHARES = 64  # about the most shares of a gradient; each is as large as the weight
_AGAIN = "install genodiff again (in a source tree: python setup.py build_ext --inplace)"


@cache
def _structures(library: Any) -> dict[str, type[ctypes.Structure]]:
    """The arguments of each kernel, from their text in native.c: pointers, then 64-bit integers.

    For a tensor x, x_b and x_l are its strides over the batch and over time (or rows), in numbers.
    """
    found: dict[str, type[ctypes.Structure]] = {}
    for name, _, fields in (line.decode().partition(" ") for line in _read_interface(library)[1:]):
        of = [
            (field, ctypes.c_void_p if star else ctypes.c_int64)
            for star, field in re.findall(r"(\*?)(\w+)[,;]", fields)
        ]
        # Without a __dict__, a field that is not there is an error.
        found[name] = type(name, (ctypes.Structure,), {"_fields_": of, "__slots__": ()})
    return found


def _read_interface(library: Any) -> list[bytes]:
    read = library.genodiff_interface
    read.restype = ctypes.c_char_p
    return list(takewhile(bool, map(read, count())))


def _open(name: str) -> tuple[ctypes.CDLL | None, str]:
    """A copy of the library, or None and what is wrong with it."""
    for suffix in sorted(EXTENSION_SUFFIXES, key=len):  # ".so" before one with a Python's name
        path = Path(__file__).with_name(f"_native_{name}{suffix}")
        if path.is_file():
            try:
                library = ctypes.CDLL(str(path))
            except OSError as fault:
                return None, f"the C library cannot be loaded ({fault}): {_AGAIN}"
            if (found := _version(library)) != INTERFACE:
                text = f"(interface {found:x}, wanted {INTERFACE:x})"
                return None, f"the C library is of another version {text}: {_AGAIN}"
            return library, ""
    return None, f"the C library was not built: {BUILD}"


_threads: list[int] = []


def set_threads(threads: int) -> None:
    """Let kernels use `threads` threads where torch is not loaded, which else decides."""
    _threads[:] = [threads]


_here = threading.local()


def map_in_order(work: Callable[[Part], Result], parts: Iterable[Part]) -> Iterator[Result]:
    """Yield `work(part)` in order: as many parts at a time as a kernel takes threads, each on one.

    The parts themselves are made in the caller's thread, at most two more than are worked on.
    """
    threads = count_threads()
    if threads < 2:
        yield from map(work, parts)
        return
    with ThreadPoolExecutor(threads, "genodiff-parts", lambda: setattr(_here, "alone", True)) as of:
        waiting: deque[Future[Result]] = deque()
        try:
            for part in parts:
                waiting.append(of.submit(work, part))
                if len(waiting) > threads + 1:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for one in waiting:
                one.cancel()


def count_threads() -> int:
    """How many threads a kernel takes."""
    if getattr(_here, "alone", False):
        return 1
    if torch := sys.modules.get("torch"):
        return min(int(torch.get_num_threads()), _MOST_THREADS)
    if not _threads:
        cores = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))(0)
        set_threads(len(cores))
    return _threads[0]


def _find_openmp() -> ctypes.c_void_p | None:
    """GOMP_parallel of the OpenMP that torch has loaded, whatever its file; None if it has none."""
    try:
        found = ctypes.CDLL(sys.modules["torch"]._C.__file__).GOMP_parallel
        return ctypes.cast(found, ctypes.c_void_p)
    except (OSError, AttributeError):
        return None


@cache
def _share_openmp(library: Any) -> None:
    if (found := _find_openmp()) is not None and hasattr(library, "genodiff_use_openmp"):
        library.genodiff_use_openmp(found)


def _version(library: Any) -> int:
    """The checksum of its interface; 0 where it has none."""
    try:
        return crc32(b"\n".join(_read_interface(library)))
    except AttributeError:
        return 0


@cache
def _library() -> tuple[ctypes.CDLL | None, str]:
    """The copy for this machine's widest instruction set and its name, or None and why."""
    base, fault = _open("base")
    if base is None:
        return None, fault
    bits = base.genodiff_vector_bits()
    for name, needed in (("avx512", 512), ("avx2", 256)):
        if bits >= needed and (library := _open(name)[0]) is not None:
            return library, name
    return base, "base"


def find_missing() -> str | None:
    """What keeps the library from running here, in words; None if nothing."""
    library, text = _library()
    return text if library is None else None


def instruction_set() -> str:
    """ "avx512", "avx2", "base", or "" where there is no library."""
    library, text = _library()
    return "" if library is None else text


def multiply_adds(rounds: int) -> int:
    """Run rounds of multiply-adds on one core, for benchmarks; returns how many vectors' worth."""
    library = _library()[0]
    assert library is not None
    library.genodiff_multiply_add.restype = ctypes.c_float
    library.genodiff_multiply_add(ctypes.c_int64(rounds))
    return 12 * rounds


def lanes() -> int:
    """Numbers in a vector."""
    library = _library()[0]
    return 0 if library is None else int(library.genodiff_lanes())


def is_loaded() -> bool:
    """Whether the library is here."""
    return _library()[0] is not None


def fits(*tensors: Tensor | None) -> bool:
    """Whether the library is here and can take these tensors, which may have any strides.

    They are float32, on a CPU, and none is empty.
    """
    torch = sys.modules["torch"]
    return is_loaded() and all(
        x is None or (x.dtype == torch.float32 and x.device.type == "cpu" and x.numel() > 0)
        for x in tensors
    )


def call(
    kernel: str,
    tensors: Mapping[str, Tensor | NDArray[Any] | None],
    *,
    backward: bool,
    **numbers: int,
) -> None:
    """Run a kernel on tensors that `fits`, each with a contiguous last axis, or on arrays.

    An array that is not contiguous, aligned and writable is copied, so an output must be all three.
    `tensors` and `numbers` are the fields of the kernel's structure; a field that is left out is
    null or 0. Where the first tensor is empty, nothing is run. Raises `MemoryError` if there is no
    memory for scratch space.
    """
    first = next(iter(tensors.values()))
    if first is not None and not isinstance(first, np.ndarray) and not first.numel():
        return
    library = _library()[0]
    assert library is not None
    arguments, arrays = _structures(library)[kernel](), []
    for name, x in tensors.items():
        if isinstance(x, np.ndarray):
            arrays.append(np.require(x, None, ["C", "A", "W"]))  # lives as long as the call
            setattr(arguments, name, arrays[-1].ctypes.data)
            continue
        setattr(arguments, name, None if x is None else x.data_ptr())
        if x is not None and hasattr(arguments, f"{name}_l"):
            if x.ndim > 2:
                setattr(arguments, f"{name}_b", x.stride(0))
            setattr(arguments, f"{name}_l", x.stride(-2))
    for name, number in numbers.items():
        setattr(arguments, name, int(number))
    if "torch" in sys.modules:
        _share_openmp(library)
    if getattr(library, f"genodiff_{kernel}")(
        ctypes.byref(arguments), int(backward), count_threads()
    ):
        raise MemoryError(f"no memory for the scratch space of the {kernel}")


def rows_per_task(least: int, rows: int) -> int:
    """Rows of a task: `least`, or more where there would be over `SHARES` tasks."""
    return max(least, -(-rows // SHARES))


def pack_channels(x: Tensor) -> Tensor:
    """`x` (B, L, C) with its channels contiguous; copied only if they are not."""
    return x if x.stride(2) == 1 or x.shape[2] == 1 else x.contiguous()
