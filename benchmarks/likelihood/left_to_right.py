"""The same copy model from left to right: a base given all bases before it in its window.

    python benchmarks/likelihood/left_to_right.py RUN [--windows 40] [--places 16] -o lines.json

A model of every visible set has a likelihood in every order. Here each window of the test split is
read from left to right: at places drawn in strata, everything from the place on is masked, and the
bits of the base there are counted. Beside it stands the bound of the exact count on the same
windows, where places are masked in any pattern. Both have the same network or Markov chain, and the
same memory, which tries every diagonal. Windows are drawn within classes and weighted as in
`memory.py`; differences are paired by window. The seed draws windows, places and masks.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from memory import MARKOV, ORDER, read_chain, summarise

from genodiff.memory.fitting import measure_bits
from genodiff.memory.memory import Memory
from genodiff.memory.search import Effort
from genodiff.memory.tables import Chain, Floats, count_words
from genodiff.memory.text import NONE, PAD
from genodiff.runs.folder import find_git_revision
from genodiff.runs.memory_fit import (
    MaskedSample,
    classify,
    count_kinds,
    draw_sample,
    read_network,
)
from genodiff.runs.model import load_model
from genodiff.runs.training_memory import cut_windows, open_train_memory

_BATCH = 16


def hide_ends(sample: MaskedSample, places: int, seed: int) -> tuple[MaskedSample, Any]:
    """Rows of the same windows, each masked from one place on; and those places, in strata."""
    rng = np.random.default_rng(seed)
    first = np.unique(sample.window, return_index=True)[1]
    masked, clean, window, kinds, at = [], [], [], [], []
    for row in first.tolist():
        x = sample.clean[row]
        for j in range(places):
            place = int((j + rng.random()) / places * len(x))
            masked.append(np.where(np.arange(len(x)) < place, x, NONE).astype(np.uint8))
            clean.append(x)
            window.append(sample.window[row])
            kinds.append(sample.kinds[row])
            at.append(place)
    rows = MaskedSample(np.stack(masked), np.stack(clean), np.array(window), np.array(kinds))
    return rows, np.array(at)


def bits_at(chances: Floats, sample: MaskedSample, at: Any) -> Floats:
    """(B,): the bits of the base at one place of each row."""
    rows = np.arange(len(at))
    found: Floats = -np.log2(np.maximum(chances[rows, at, sample.clean[rows, at]], 1e-12))
    return found


def read(model: Any, chain: Chain, sample: MaskedSample) -> dict[str, Floats]:
    """(B, L, 4): what the network says, and what the Markov chain says."""
    parts = [
        read_chain(chain, sample.masked[i : i + _BATCH])
        for i in range(0, len(sample.masked), _BATCH)
    ]
    return {"network": read_network(model, sample.masked), MARKOV: np.concatenate(parts)}


def by_window(values: Floats, sample: MaskedSample) -> Floats:
    """(W,): the mean of each window's rows, in the order of window numbers."""
    return np.array([values[sample.window == w].mean() for w in np.unique(sample.window)])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--windows", type=int, default=40, help="of each class")
    parser.add_argument("--places", type=int, default=48, help="for each window; masks as many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, required=True)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    begun = time.process_time()
    model = load_model(asked.run)
    found = open_train_memory(model)
    assert found.store is not None
    memory: Memory = found.memory.with_effort(Effort(scored=None))
    text = memory.text
    chain = Chain(count_words(text.codes[PAD : PAD + text.size], ORDER))
    windows = cut_windows(found.store, "test", model.config.data.seq_len)
    kinds = classify(found.store, windows)
    counts = count_kinds(kinds)
    share = counts / counts.sum()
    anyhow = draw_sample(windows, kinds, asked.windows, asked.places, asked.seed)
    onward, at = hide_ends(anyhow, asked.places, asked.seed)
    recalled = memory.recall(anyhow.masked), memory.recall(onward.masked)
    tables = {}
    said = read(model, chain, anyhow), read(model, chain, onward)
    first = np.unique(anyhow.window, return_index=True)[1]
    each = MaskedSample(
        anyhow.masked[first], anyhow.clean[first], anyhow.window[first], anyhow.kinds[first]
    )
    for name in said[0]:
        bits = []
        for with_memory in (False, True):
            mixed = [
                r.background[..., None] * one[name] + r.copy if with_memory else one[name]
                for r, one in zip(recalled, said, strict=True)
            ]
            any_order = by_window(measure_bits(mixed[0], anyhow.masked, anyhow.clean), anyhow)
            left = by_window(bits_at(mixed[1], onward, at), onward)
            bits.append({
                "any order": summarise(any_order, each, share),
                "left to right": summarise(left, each, share),
                "left to right minus any order": summarise(left - any_order, each, share),
            })  # fmt: skip
        tables[name] = {"alone": bits[0], "with memory": bits[1]}
        print(name, json.dumps(tables[name]), flush=True)
    told = {
        "run": asked.run.name, "checkpoint": model.digest, "windows": asked.windows,
        "places": asked.places, "seed": asked.seed, "tables": tables,
        "commit": find_git_revision(), "cpu_s": time.process_time() - begun,
    }  # fmt: skip
    asked.output.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
