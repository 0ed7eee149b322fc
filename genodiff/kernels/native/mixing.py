"""The adaptive mixture of contexts and copies in C; `evaluation/adaptive.py` has the equations."""

import numpy as np
import torch
from numpy.typing import NDArray

from genodiff.kernels.library import call

Codes = NDArray[np.uint8]


def mix_contexts(
    train: Codes, fit: Codes, text: Codes, *, seed_length: int, grow: bool
) -> NDArray[np.float64]:
    """Nats of each base of `text` (codes 0..3, and 4 for an end or an N, which cost nothing).

    The memory is `train`, on both strands; the weights have learned on `fit` before. With `grow`,
    what has been scored is remembered too. Raises `MemoryError`.
    """
    nats = np.zeros(len(text))
    arrays = {"train": train, "fit": fit, "text": text, "nats": nats}
    tensors = {
        name: torch.from_numpy(np.require(x, None, ["C", "W"])) for name, x in arrays.items()
    }
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
    return tensors["nats"].numpy()
