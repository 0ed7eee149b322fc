"""The sampled table of a text in C; `genodiff/memory/sampled_table.py` has the NumPy form."""

import numpy as np
from numpy.typing import NDArray

from genodiff.kernels.library import call
from genodiff.kernels.native.recall import wrap_arrays

_LEAST_BITS, _MOST_BITS = 2, 10
_WORD_BITS = 18
"""Where there may be as many pieces, one has 2^18 words: their counts fit a cache."""
Words = NDArray[np.uint64]
Numbers = NDArray[np.uint32]


def fill_sampled(
    planes: NDArray[np.uint8], size: int, k: int, spare: int
) -> tuple[Words, Numbers, Numbers]:
    """ends, jumps and places of the words of k bases that begin at every fourth place.

    `planes`: (3, bytes), those of a text of `size` places. Raises `MemoryError`.
    """
    bits = min(max(2 * k - _WORD_BITS, _LEAST_BITS), _MOST_BITS)
    totals = np.zeros(2**bits + 1, np.int64)
    numbers = dict(plane_bytes=planes.shape[1], size=size, k=k, piece_bits=bits)
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
