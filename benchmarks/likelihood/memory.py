"""What a memory of the train split gives a network, measured on windows of a held-out split.

    python benchmarks/likelihood/memory.py RUN --fit 60 --numbers numbers.json   fit on valid
    python benchmarks/likelihood/memory.py RUN --numbers numbers.json            measure on test
    python benchmarks/likelihood/memory.py RUN --exhaustive 12                   every diagonal, too

A figure is the bound of the exact count: the mean over k = 1..n, in strata, of the bits of a masked
base. Windows are drawn within classes (unique, touched, repeat: the share of a window in 24-mers
that the train split has), and classes are weighted by how many windows the split has of each. The
store is part of the model. Times are of one thread.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from genodiff.data.kmers import measure_shared_cover, shared_kmers
from genodiff.kernels.library import instruction_set
from genodiff.memory.evidence import Chain, count_words
from genodiff.memory.fitting import fit_numbers, measure_bits
from genodiff.memory.memory import Memory
from genodiff.memory.numbers import MemoryNumbers
from genodiff.memory.search import Effort
from genodiff.memory.text import NONE, PAD, Codes
from genodiff.runs.feed import open_data
from genodiff.runs.model import TrainedModel, load_model
from genodiff.runs.training_memory import list_stretches, open_split_memory

CLASSES = ("unique", "touched", "repeat")
ORDER = 5
_BATCH = 16

Floats = NDArray[np.float64]


class Sample(NamedTuple):
    """Rows of masked windows, what stands there, each row's window, and each window's class."""

    masked: Codes
    clean: Codes
    window: NDArray[np.int64]
    kinds: NDArray[np.int64]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--windows", type=int, default=25, help="of each class")
    parser.add_argument("--draws", type=int, default=4, help="masks for each window")
    parser.add_argument("--exhaustive", type=int, default=0, help="windows of each class, as well")
    parser.add_argument(
        "--fit", type=int, default=0, help="fit on so many valid windows of each class, and stop"
    )
    parser.add_argument("--scored", type=int, nargs="*", default=[25_000])
    parser.add_argument("--numbers", type=Path, help="JSON of the numbers, read or written")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    model = load_model(asked.run)
    store = open_data(model.config, model.run).store
    memory = open_split_memory(store)
    if asked.numbers and asked.numbers.exists():
        told = json.loads(asked.numbers.read_text())
        memory = memory.with_numbers(MemoryNumbers.parse(told["numbers"]))
    length = model.config.data.seq_len
    if asked.fit:
        windows = cut(store, "valid", length)
        kinds = classify(store, windows)
        fit(model, memory, draw(windows, asked.fit, asked, kinds), count_kinds(kinds), asked)
        return
    windows = cut(store, "test", length)
    kinds = classify(store, windows)
    counts = count_kinds(kinds)
    rows = {"counts": counts.tolist(), "isa": instruction_set(), "tables": []}
    for n, efforts in (
        (asked.windows, [Effort(scored=s) for s in asked.scored]),
        (asked.exhaustive, [Effort(), Effort(scored=None)]),
    ):
        if n:
            sample = draw(windows, n, asked, kinds)
            rows["tables"] += measure(model, memory, sample, efforts, counts / counts.sum())
    if asked.output:
        asked.output.write_text(json.dumps(rows, indent=1) + "\n")


def classify(store: Any, windows: Codes) -> NDArray[np.int64]:
    """The class of each window: its number in CLASSES."""
    train = [codes for _, _, codes in list_stretches(store, "train")]
    cover = measure_shared_cover(list(windows), shared_kmers(list(windows), train))
    return np.where(cover >= 0.25, 2, np.where(cover > 0, 1, 0))


def count_kinds(kinds: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.bincount(kinds, minlength=len(CLASSES))


def cut(store: Any, split: str, length: int) -> Codes:
    """The windows of a split without N, side by side."""
    parts = [
        codes[0 : len(codes) // length * length].reshape(-1, length)
        for _, _, codes in list_stretches(store, split)
    ]
    whole = np.concatenate(parts)
    return whole[(whole < NONE).all(1)]


def draw(windows: Codes, n: int, asked: argparse.Namespace, kinds: NDArray[np.int64]) -> Sample:
    """n windows of each class, each masked `draws` times, k in strata."""
    rng = np.random.default_rng(asked.seed)
    chosen = np.concatenate(
        [rng.permutation(np.flatnonzero(kinds == c))[:n] for c in range(len(CLASSES))]
    )
    masked, clean, window = [], [], []
    for w in chosen.tolist():
        x = windows[w]
        for j in range(asked.draws):
            k = 1 + int((j + rng.random()) / asked.draws * len(x))
            masked.append(np.where(rng.permutation(len(x)) < k, NONE, x).astype(np.uint8))
            clean.append(x)
            window.append(w)
    return Sample(np.stack(masked), np.stack(clean), np.array(window), kinds[window])


def read_network(model: TrainedModel, masked: Codes) -> Floats:
    """(B, L, 4): what the network says."""
    ids = np.array([*model.alphabet.targets, model.alphabet.mask_id])
    out = []
    with torch.no_grad():
        for first in range(0, len(masked), _BATCH):
            xt = torch.from_numpy(ids[masked[first : first + _BATCH]])
            logits = model.backbone(xt, torch.zeros(len(xt)))
            out.append(logits[..., list(model.alphabet.targets)].double().softmax(-1).numpy())
    return np.concatenate(out)


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


def fit(
    model: TrainedModel,
    memory: Memory,
    sample: Sample,
    counts: NDArray[np.int64],
    asked: argparse.Namespace,
) -> None:
    """Fit the numbers, the windows of a class counting as much as the split has of them."""
    said = read_network(model, sample.masked)
    weights = (counts / np.maximum(count_kinds(sample.kinds), 1))[sample.kinds]
    rounds = ((1.6, 0.625), (1.25, 0.8))
    given = memory, sample.masked, sample.clean, said
    found = fit_numbers(*given, weights=weights, rounds=rounds, tell=tell)
    print(json.dumps(found._asdict(), default=lambda x: x.model_dump()))
    if asked.numbers:
        told = {"numbers": found.numbers.model_dump(mode="json"), "bits": found[1:]}
        asked.numbers.write_text(json.dumps(told, indent=1) + "\n")


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measure(
    model: TrainedModel, memory: Memory, sample: Sample, efforts: list[Effort], share: Floats
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
    said[f"Markov {ORDER}"] = np.concatenate(parts)
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


def summarise(values: Floats, sample: Sample, share: Floats) -> dict[str, list[float]]:
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
