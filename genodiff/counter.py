"""Counter-based randomness: every draw is a pure function of (seed, purpose, index).

Nothing here has state, so no draw depends on worker count, batch size, rank, restarts or the order
of calls. The generator is Philox-4x64 (Salmon et al. 2011) as numpy ships it: the key holds (seed,
purpose), the counter's high words hold the index, and the low words count the numbers drawn for
that index.
"""

from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Purpose(IntEnum):
    """What a draw is for. Values are part of the file format of a run: append, never renumber."""

    WINDOW_ORDER = 1  # index = epoch
    WINDOW_PHASE = 2  # index = epoch
    STRAND = 3  # index = global sample number
    TIME = 4  # index = global sample number (iid) or step (the shared offset)
    MASK = 5  # index = global sample number
    EVAL_TIME = 6
    EVAL_MASK = 7
    SAMPLE_ORDER = 8  # index = record number
    SAMPLE_TOKEN = 9  # index = record number
    SAMPLE_STRAND = 10
    DROPOUT = 11
    INIT = 12
    TOY_GENOME = 13
    BOOTSTRAP = 14
    BASELINE = 15  # Markov sequence beside samples
    FINETUNE_SPLIT = 16  # index = 0
    FINETUNE_ORDER = 17  # index = epoch
    FINETUNE_STRAND = 18  # index = epoch
    FINETUNE_DROPOUT = 19  # index = example, sub-index = epoch
    VARIANT_ORDER = 20  # index = key of a pair of spellings, sub-index = bases of the span
    VARIANT_MASK = 21  # index = key of a pair of spellings, sub-index = round
    VARIANT_SITE = 22  # index = number of a site that spacings are measured at
    VARIANT_BACKGROUND = 23  # index = number of a random variant of a genome
    TRACK_SITE = 24  # index = number of a base at which two ways to mask are compared
    LABEL = 25  # index = global sample number
    GENOME_MIX = 26  # index = block of samples
    FINETUNE_MASK = 27  # index = example, sub-index = epoch


def generator(
    seed: int, purpose: Purpose, index: int = 0, sub_index: int = 0
) -> np.random.Generator:
    """The generator of all draws of `purpose` for `index` (and `sub_index`). All three must be 0 or
    more, below 2^64.
    """
    return np.random.Generator(
        np.random.Philox(key=[seed, int(purpose)], counter=[0, 0, sub_index, index])
    )


def uniforms(
    seed: int, purpose: Purpose, index: int, n: int, sub_index: int = 0
) -> NDArray[np.float64]:
    """`n` uniforms in [0, 1) with 53 random bits each; the first m of n are the m of a shorter
    call.
    """
    return generator(seed, purpose, index, sub_index).random(n)


def uniforms_from(
    seed: int, purpose: Purpose, index: int, start: int, n: int, sub_index: int = 0
) -> NDArray[np.float64]:
    """`uniforms(seed, purpose, index, start + n, sub_index)[start:]`, without those before."""
    block, skipped = divmod(start, 4)  # a step of the counter gives four numbers
    bits = np.random.Philox(key=[seed, int(purpose)], counter=[block, 0, sub_index, index])
    return np.random.Generator(bits).random(skipped + n)[skipped:]


def uniform_rows(
    seed: int, purpose: Purpose, indices: ArrayLike, n: int, sub_index: int = 0
) -> NDArray[np.float64]:
    """(len(indices), n): row i is `uniforms(seed, purpose, indices[i], n, sub_index)`, faster for
    many rows.
    """
    indices = np.asarray(indices, np.uint64)
    rows = np.empty((len(indices), n))
    bits = np.random.Philox(key=[seed, int(purpose)], counter=[0, 0, sub_index, 0])
    draw = np.random.Generator(bits)
    state = bits.state
    for row, index in zip(rows, indices, strict=True):
        state["state"]["counter"][3] = index
        bits.state = state
        draw.random(out=row)
    return rows
