"""Draws under constraints in C; `genodiff/constraints/chain.py` has the same in NumPy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.kernels.library import call

Floats = NDArray[np.float64]


def draw_chain(
    tables: NDArray[np.int32],
    begin: NDArray[np.int64],
    first: NDArray[np.int64],
    gains: Floats | None,
    p: Floats,
    due: NDArray[np.bool_],
    u: Floats,
    error: float,
) -> tuple[NDArray[np.int8], bool] | None:
    """The bases at the due positions, and whether errors of log p by `error` could change one.

    `tables`, `begin`, `first` and `gains` are a `PackedLayers`; `p` is (F, 4), `due` and `u` (F,).
    None where a message may underflow. Raises `MemoryError`.
    """
    symbols, told = np.zeros(len(p), np.int8), np.zeros(2, np.int64)
    arrays: dict[str, NDArray[Any]] = {
        "tables": tables, "begin": begin, "first": first, "p": p.copy(), "due": due, "u": u,
        "error": np.array([error]), "symbols": symbols, "told": told,
    }  # fmt: skip
    arrays |= {} if gains is None else {"gains": gains}
    tensors = {
        name: x if x.flags.carray else np.require(x, None, ["C", "A", "W"])
        for name, x in arrays.items()
    }
    most = int((first[1:] - first[:-1]).max())
    call("chain", tensors, backward=False, F=len(p), most=most)
    return (symbols[due], bool(told[1])) if told[0] else None
