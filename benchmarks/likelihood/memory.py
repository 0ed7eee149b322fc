"""What a memory of the train split gives a network, measured on windows of a held-out split.

    python benchmarks/likelihood/memory.py RUN
    python benchmarks/likelihood/memory.py RUN --exhaustive 12      every diagonal, too

A figure is the bound of the exact count: the mean over k = 1..n, in strata, of the bits of a masked
base. Windows are drawn within classes (unique, touched, repeat: the share of a window in 24-mers
that the train split has), and classes are weighted by how many windows the split has of each. The
store is part of the model. Times are of one thread.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from genodiff.kernels.library import instruction_set
from genodiff.memory.fitting import measure_bits
from genodiff.memory.memory import Memory
from genodiff.memory.search import Effort
from genodiff.memory.tables import Chain, Floats, count_words
from genodiff.memory.text import NONE, PAD, Codes
from genodiff.runs.memory_fit import (
    CLASSES,
    MaskedSample,
    classify,
    count_kinds,
    draw_sample,
    read_network,
)
from genodiff.runs.model import TrainedModel, load_model
from genodiff.runs.training_memory import cut_windows, open_train_memory

ORDER = 5
MARKOV = f"Markov {ORDER}"
_BATCH = 16


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--windows", type=int, default=25, help="of each class")
    parser.add_argument("--draws", type=int, default=4, help="masks for each window")
    parser.add_argument("--exhaustive", type=int, default=0, help="windows of each class, as well")
    parser.add_argument("--scored", type=int, nargs="*", default=[25_000])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    model = load_model(asked.run)
    found = open_train_memory(model)
    store, memory = found.store, found.memory
    assert store is not None
    windows = cut_windows(store, "test", model.config.data.seq_len)
    kinds = classify(store, windows)
    counts = count_kinds(kinds)
    rows = {"counts": counts.tolist(), "isa": instruction_set(), "tables": []}
    for n, efforts in (
        (asked.windows, [Effort(scored=s) for s in asked.scored]),
        (asked.exhaustive, [Effort(), Effort(scored=None)]),
    ):
        if n:
            sample = draw_sample(windows, kinds, n, asked.draws, asked.seed)
            rows["tables"] += measure(model, memory, sample, efforts, counts / counts.sum())
    if asked.output:
        asked.output.write_text(json.dumps(rows, indent=1) + "\n")


def read_chain(chain: Chain, masked: Codes) -> Floats:
    """(B, L, 4): the chain's conditionals given all visible bases, by forward-backward."""
    n, length = masked.shape
    size = len(chain.first)
    kept = np.where(masked[..., None] == NONE, True, masked[..., None] == np.arange(4))
    forward = np.zeros((length, n, size), np.float32)
    state = np.tile(chain.first, (n, 1))
    for i in range(length):
        forward[i] = state
        joint = state[..., None] * chain.next * kept[:, i, None]
        state = joint.reshape(n, 4, -1, 4).sum(1).reshape(n, size)
        state /= state.sum(1, keepdims=True)
    out, after = np.zeros((n, length, 4)), np.ones((n, size))
    for i in reversed(range(length)):
        ahead = np.tile(after.reshape(n, 1, size // 4, 4), (1, 4, 1, 1)).reshape(n, size, 4)
        step = chain.next * ahead
        out[:, i] = (forward[i][..., None] * step).sum(1)
        after = (step * kept[:, i, None]).sum(-1)
        after /= after.max(1, keepdims=True)
    return out / out.sum(-1, keepdims=True)


def measure(
    model: TrainedModel, memory: Memory, sample: MaskedSample, efforts: list[Effort], share: Floats
) -> list[dict[str, Any]]:
    """The figures of one sample: backgrounds alone, and with the memory at each effort."""
    begun = time.process_time()
    said = {"network": read_network(model, sample.masked)}
    network_ms = 1e3 * (time.process_time() - begun) / len(sample.masked)
    text = memory.text
    chain = Chain(count_words(text.codes[PAD : PAD + text.size], ORDER))
    parts = [
        read_chain(chain, sample.masked[i : i + _BATCH])
        for i in range(0, len(sample.masked), _BATCH)
    ]
    said[MARKOV] = np.concatenate(parts)
    tables = []
    for effort in efforts:
        begun = time.process_time()
        recalled = memory.with_effort(effort).recall(sample.masked)
        spent = 1e3 * (time.process_time() - begun) / len(sample.masked)
        for name, chances in said.items():
            alone = measure_bits(chances, sample.masked, sample.clean)
            mixed = recalled.background[..., None] * chances + recalled.copy
            bits = measure_bits(mixed, sample.masked, sample.clean)
            row = {
                "windows": len(set(sample.window.tolist())), "rows": len(bits),
                "scored": effort.scored, "denoiser": name, "ms": spent, "network_ms": network_ms,
                "alone": summarise(alone, sample, share), "with": summarise(bits, sample, share),
                "difference": summarise(bits - alone, sample, share),
            }  # fmt: skip
            tables.append(row)
            print(json.dumps(row), flush=True)
    return tables


def summarise(values: Floats, sample: MaskedSample, share: Floats) -> dict[str, list[float]]:
    """Mean and standard error over windows, of each class and of all, classes weighted."""
    out: dict[str, list[float]] = {}
    mean = error = 0.0
    for c, name in enumerate(CLASSES):
        chosen = sample.kinds == c
        windows = np.unique(sample.window[chosen])
        each = np.array([values[sample.window == w].mean() for w in windows])
        if len(each) < 2:
            continue
        wrong = float(each.std(ddof=1) / np.sqrt(len(each)))
        out[name] = [float(each.mean()), wrong]
        mean += share[c] * out[name][0]
        error += (share[c] * wrong) ** 2
    return {**out, "all": [mean, float(np.sqrt(error))]}


if __name__ == "__main__":
    main()
