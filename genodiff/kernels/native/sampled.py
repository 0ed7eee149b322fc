"""The sampled table of a text in C; `genodiff/memory/sampled_table.py` has the NumPy form."""

import numpy as np
from numpy.typing import NDArray

from genodiff.kernels.library import call
from genodiff.kernels.native.recall import wrap_arrays

_PIECE_BYTES = 1 << 28
"""About the most bytes of counts that a thread holds."""
_MOST_PIECES = 64
Words = NDArray[np.uint64]
Numbers = NDArray[np.uint32]


def fill_sampled(
    planes: NDArray[np.uint8], size: int, k: int, step: int, spare: int
) -> tuple[Words, Numbers, Numbers]:
    """ends, jumps and places of the words of k bases that begin at multiples of `step`.

    `planes`: (3, bytes), those of a text of `size` places. Raises `MemoryError`.
    """
    pieces = min(max(4**k * 4 // _PIECE_BYTES, 4), _MOST_PIECES)
    totals = np.zeros(pieces + 1, np.int64)
    numbers = dict(plane_bytes=planes.shape[1], size=size, k=k, step=step, pieces=pieces)
    fixed = {"planes": planes, "totals": totals}
    call("sampled", wrap_arrays(fixed), backward=False, **numbers)
    np.cumsum(totals, out=totals)  # the first place of each piece
    n = int(totals[-1])
    ends = np.zeros((4**k + n + 63) // 64 + spare, np.uint64)
    jumps, at = np.zeros(4**k // 32 + 1, np.uint32), np.zeros(n, np.uint32)
    jumps[-1] = 4**k + n
    out = {"ends": ends, "jumps": jumps, "at": at}
    call("sampled", wrap_arrays({**fixed, **out}), backward=True, **numbers)
    return ends, jumps, at
