"""One factor for each base from all relatives, in C; `genodiff/memory/columns.py` has the equations
and the NumPy form.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.kernels.library import call
from genodiff.kernels.native.recall import wrap_arrays

MOST_RATES = 16
"""The most rates that the library takes; those that are not used have weight 0."""

Array = NDArray[Any]


def weigh(arrays: Mapping[str, Array], *, relatives: int, states: int) -> Array:
    """factors (B, L, 4). `arrays` are fields of `columns_args` (native.c). Raises `MemoryError`."""
    batch, length = arrays["codes"].shape
    factors = np.empty((batch, length, 4))
    call(
        "columns", wrap_arrays({**arrays, "factors": factors}), backward=False,
        batch=batch, L=length, G=relatives, nodes=len(arrays["parent"]), K=states,
    )  # fmt: skip
    return factors
