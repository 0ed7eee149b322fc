"""The C library built for arm64 by a cross compiler and run by an emulator, a process per call, in
the place of this machine's own.
"""

import ctypes
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from compiling import FLAGS, SOURCES
from numpy.typing import NDArray
from torch import Tensor

from genodiff.kernels import library

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
MISSING = [tool for tool in (COMPILER, EMULATOR) if shutil.which(tool) is None]

# A file holds the arguments and, from there on, all tensors; pointers are offsets in it.
MAIN = """
#include "native.c"
#include <fcntl.h>
#include <sys/mman.h>

int main(int count, char **given) {
    int64_t size = atoll(given[2]), pointers = atoll(given[4]);
    char *all = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, open(given[1], O_RDWR), 0);
    if (all == MAP_FAILED || count != 7) return 2;
    for (int64_t i = 0; i < pointers; i++)
        if (((uint64_t *)all)[i]) ((uint64_t *)all)[i] += (uint64_t)all;
    int backward = atoi(given[5]), threads = atoi(given[6]);
#define RUN(name) \\
    if (!strcmp(given[3], #name)) return genodiff_##name((void *)all, backward, threads);
    RUN(scan) RUN(conv) RUN(gate) RUN(norm) RUN(linear)
    RUN(recall) RUN(kmers) RUN(sampled) RUN(align) RUN(far) RUN(columns) RUN(chain) RUN(segments)
    RUN(classes)
    return 2;
}
"""


def compiled(folder: Path) -> Path:
    """The program that does one call."""
    (folder / "main.c").write_text(MAIN)
    flags = [*FLAGS, "-O3", "-static", f"-I{SOURCES}"]
    subprocess.run(
        [COMPILER, *flags, str(folder / "main.c"), "-o", str(folder / "kernels"), "-lm"], check=True
    )
    return folder / "kernels"


class Arm64:
    """What `library` takes for a loaded copy."""

    def __init__(self, program: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.program, self.file, self.calls = program, file, 0
        self._tensors: list[Tensor | NDArray[Any]] = []
        own, _ = library._library()
        assert own is not None
        self.genodiff_interface = own.genodiff_interface
        for kernel in library._structures(own):
            setattr(self, f"genodiff_{kernel}", partial(self._run, kernel))
        monkeypatch.setattr(library, "_library", lambda: (self, "arm64"))
        for module in list(sys.modules.values()):
            if module is not library and getattr(module, "call", None) is library.call:
                monkeypatch.setattr(module, "call", self._call)

    def _call(
        self,
        kernel: str,
        tensors: dict[str, Tensor | NDArray[Any] | None],
        *,
        backward: bool,
        **numbers: int,
    ) -> None:
        tensors = {
            name: np.require(x, None, ["C", "A", "W"]) if isinstance(x, np.ndarray) else x
            for name, x in tensors.items()
        }
        self._tensors = [x for x in tensors.values() if x is not None]
        library.call(kernel, tensors, backward=backward, **numbers)

    def _run(self, kernel: str, given: Any, backward: int, threads: int) -> int:
        """The storages of the tensors there and back."""
        arguments: ctypes.Structure = given._obj
        blocks = {b.ctypes.data: b for b in map(_bytes, self._tensors) if b.size}
        places, end = {}, _up(ctypes.sizeof(arguments))
        for start, block in blocks.items():
            places[start], end = end, _up(end + block.size)
        content = np.zeros(end, np.uint8)
        for start, block in blocks.items():
            content[places[start] :][: block.size] = block
        pointers = [name for name, kind in arguments._fields_ if kind is ctypes.c_void_p]
        moved = type(arguments).from_buffer_copy(arguments)
        for name in pointers:
            if pointer := getattr(arguments, name):
                start = max(s for s in blocks if s <= pointer)
                setattr(moved, name, places[start] + pointer - start)
        content[: ctypes.sizeof(moved)] = np.frombuffer(moved, np.uint8)
        content.tofile(self.file)
        command: list[Any] = [EMULATOR, self.program, self.file, end, kernel, len(pointers),
                              backward, threads]  # fmt: skip
        subprocess.run([str(word) for word in command], check=True)
        content = np.fromfile(self.file, np.uint8)
        for start, block in blocks.items():
            if block.flags.writeable:
                block[:] = content[places[start] :][: block.size]
        self.calls += 1
        return 0


def _up(size: int) -> int:
    return -(-size // 64) * 64


def _bytes(x: Tensor | NDArray[Any]) -> NDArray[np.uint8]:
    """All of the memory that `x` is a view of."""
    if isinstance(x, Tensor):
        return torch.tensor([], dtype=torch.uint8).set_(x.untyped_storage()).numpy()
    while isinstance(x.base, np.ndarray):
        x = x.base
    return x.reshape(-1).view(np.uint8)
