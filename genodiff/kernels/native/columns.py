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


def weigh(
    arrays: Mapping[str, Array], *, relatives: int, states: int, posterior: bool = False
) -> tuple[Array, Array | None, Array | None]:
    """Factors (B, L, 4); with `posterior` also rates (B, L, 16) and states (B, L, K), else None.

    `arrays` are fields of `columns_args` (native.c). Raises `MemoryError`.
    """
    shape = arrays["codes"].shape
    out: dict[str, Array] = {"factors": np.empty((*shape, 4))}
    if posterior:
        out |= {"rates": np.empty((*shape, MOST_RATES)), "posterior": np.empty((*shape, states))}
    call(
        "columns", wrap_arrays({**arrays, **out}), backward=False,
        batch=shape[0], L=shape[1], G=relatives, nodes=len(arrays["parent"]), K=states,
    )  # fmt: skip
    return out["factors"], out.get("rates"), out.get("posterior")
