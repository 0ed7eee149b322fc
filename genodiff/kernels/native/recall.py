"""The memory's table and recall in C; `genodiff/memory/` has the equations and the NumPy forms."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.kernels.library import call

CLASSES = 4
"""The most classes of divergence that the library takes."""
MOST_NEIGHBOURS = 192
"""Diagonals of a strand beside those that are kept: 12 centres, 16 neighbours each."""
_PIECES = 8

Array = NDArray[Any]


def count_words(codes: NDArray[np.uint8], k: int) -> NDArray[np.uint32]:
    """(4^k,): how often each word of k bases stands in `codes`, 0..3, anything else 4."""
    start = np.zeros(4**k + 1, np.uint32)
    tensors = wrap_arrays({"codes": codes, "start": start})
    call("kmers", tensors, backward=False, n=len(codes), k=k, pieces=1)
    return start[1:]


def fill_table(codes: NDArray[np.uint8], k: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """start (4^k + 1,) and at, the places of every word of k bases, ascending for each word.

    `codes`: 0..3, anything else 4. Raises `MemoryError`.
    """
    start = np.zeros(4**k + 1, np.uint32)
    numbers = dict(n=len(codes), k=k, pieces=_PIECES)
    tensors = wrap_arrays({"codes": codes, "start": start})
    call("kmers", tensors, backward=False, **numbers)
    np.cumsum(start, out=start)
    at = np.zeros(int(start[-1]), np.uint32)
    call("kmers", tensors | wrap_arrays({"at": at}), backward=True, **numbers)
    return start, at


def recall(
    arrays: Mapping[str, Array], *, most: int, find: bool = False, **numbers: int
) -> tuple[Array, Array, Array, list[tuple[Array, Array]]]:
    """Evidence (B, L), background (B, L), copy (B, L, 4), and the diagonals of each window.

    `arrays` and `numbers` are fields of `recall_args` (native.c). With `find`, background and copy
    are not worked out. Raises `MemoryError`.
    """
    batch, length = arrays["codes"].shape
    each = most + MOST_NEIGHBOURS
    out = {
        "evidence": np.ones((batch, length)),
        "background": np.ones((batch, length)),
        "copy": np.zeros((batch, length, 4)),
        "diagonals": np.zeros((batch, 2, each), np.int64),
        "counts": np.zeros((batch, 2), np.int64),
    }
    call(
        "recall", wrap_arrays({**arrays, **out}), backward=find,
        batch=batch, L=length, most=most, **numbers,
    )  # fmt: skip
    found = [
        (rows[0, : n[0]], rows[1, : n[1]])
        for rows, n in zip(out["diagonals"], out["counts"].tolist(), strict=True)
    ]
    return out["evidence"], out["background"], out["copy"], found


def wrap_arrays(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """C arrays: what is given contiguous and writable is not copied."""
    return {name: np.require(x, None, ["C", "W"]) for name, x in arrays.items()}
