"""The adaptive mixture of contexts and copies in C; `evaluation/adaptive.py` has the equations."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.kernels.library import call
from genodiff.kernels.native.recall import wrap_arrays

Codes = NDArray[np.uint8]


def mix_contexts(
    train: Codes, fit: Codes, text: Codes, *, seed_length: int, grow: bool
) -> NDArray[np.float64]:
    """Nats of each base of `text` (codes 0..3, and 4 for an end or an N, which cost nothing).

    The memory is `train`, on both strands; the weights have learned on `fit` before. With `grow`,
    what has been scored is remembered too. Raises `MemoryError`.
    """
    nats = np.zeros(len(text))
    arrays: dict[str, NDArray[Any]] = {"train": train, "fit": fit, "text": text, "nats": nats}
    tensors = wrap_arrays(arrays)
    call(
        "mixing",
        tensors,
        backward=False,
        n_train=len(train),
        n_fit=len(fit),
        n=len(text),
        seed=seed_length,
        grow=int(grow),
    )
    return nats
