"""How windows lie over a relative's genome, in C; `genodiff/memory/alignment.py` has the equations
and the NumPy form.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.kernels.library import call
from genodiff.kernels.native.recall import wrap_arrays

CLASSES = 8
"""The most classes of divergence that the library takes."""

Array = NDArray[Any]


def align(arrays: Mapping[str, Array], *, classes: int, **numbers: int) -> tuple[Array, Array]:
    """over (B, L, E, 4) and ln of the likelihoods (B,).

    `arrays` and `numbers` are fields of `align_args` (native.c). Raises `MemoryError`.
    """
    batch, length = arrays["codes"].shape
    out = {"over": np.empty((batch, length, classes, 4)), "likelihood": np.empty(batch)}
    call(
        "align", wrap_arrays({**arrays, **out}), backward=False,
        batch=batch, L=length, classes=classes, **numbers,
    )  # fmt: skip
    return out["over"], out["likelihood"]
