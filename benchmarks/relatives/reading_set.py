"""Form (c) beside the default: a network that reads the set of relatives' predictions.

    python benchmarks/relatives/reading_set.py RUN [steps]

Each relative g says p_g (the chance of each base over a place), w0_g (that it says nothing) and its
distance. A small network of each such row is summed over relatives, so their order does not matter
and any number is read; with the default's answer and the visible bases it goes through a stack of
dilated convolutions along the window, on both strands, and what comes out is added to the default's
logarithms. It begins at the default, and learns what is left. Relatives are dropped at random.

RUN: a network trained without chrXIV and chrXVI. Numbers of the default are fitted on chrXVI, the
reader is trained on other chromosomes, and both are asked on the same masked bases of chrXIV.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from yeast_setting import FOUR, KEPT, cut, mask, open_relative

from genodiff.memory.columns import ColumnNumbers, combine
from genodiff.memory.fitting import measure_bits
from genodiff.memory.relatives_fit import fit_relatives, measure_distances
from genodiff.memory.text import NONE
from genodiff.runs.memory_fit import read_network
from genodiff.runs.model import load_model

TRAIN = ("chrII", "chrIV", "chrVII", "chrX", "chrXII", "chrXV")
WINDOWS, DRAWS, TEST = 80, 3, 150
DROPPED, BATCH, SEEDS = 0.25, 12, (1, 2, 3)


class SetReader(nn.Module):
    """Sums what relatives say of each place, and corrects the default's logarithms."""

    def __init__(self, width: int = 48, blocks: int = 5) -> None:
        super().__init__()
        self.of_relative = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, width))
        self.enter = nn.Conv1d(width + 9, width, 1)
        self.blocks = nn.ModuleList(
            nn.Conv1d(width, width, 5, padding=2 * 2**i, dilation=2**i) for i in range(blocks)
        )
        self.leave = nn.Conv1d(width, 4, 1)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)

    def forward(self, over: Tensor, far: Tensor, codes: Tensor, logs: Tensor) -> Tensor:
        """(B, L, 4) logarithms: `over` (G, B, L, 4), `far` (G,), `codes` and `logs` (B, L, ...)."""
        out = self.read(over, far, codes, logs)
        turned = [over.flip(2, 3), far, turn(codes), logs.flip(1, 2)]
        return logs + (out + self.read(*turned).flip(1, 2)) / 2

    def read(self, over: Tensor, far: Tensor, codes: Tensor, logs: Tensor) -> Tensor:
        silent = 1 - over.sum(-1, keepdim=True)
        rows = torch.cat([over, silent, far[:, None, None, None].expand_as(silent)], -1)
        told = (self.of_relative(rows) * (1 - silent)).sum(0)
        seen = nn.functional.one_hot(codes, 5).float()
        x = self.enter(torch.cat([told, seen, logs.clamp(-12)], -1).transpose(1, 2))
        for block in self.blocks:
            x = x + torch.relu(block(x))
        return self.leave(x).transpose(1, 2)


def turn(codes: Tensor) -> Tensor:
    return torch.where(codes < NONE, 3 - codes, codes).flip(1)


def prepare(run: str) -> dict:
    """Rows, what the network says of them, and what stands over them; kept in a file."""
    path = KEPT / f"reading-{WINDOWS}x{DRAWS}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    relatives = fit_relatives([open_relative(name) for name in FOUR], cut("chrXVI", 60))
    of_fit = relatives.align(cut("chrXVI", 60))
    far = measure_distances(of_fit, cut("chrXVI", 60))[0, 1:]
    if not path.exists():
        model, kept = load_model(Path(run)), {}
        clean = {"train": np.concatenate([cut(c, WINDOWS) for c in TRAIN])}
        clean["test"] = cut("chrXIV", TEST)
        for part, draws, seed in (("train", DRAWS, 11), ("test", 6, 2)):
            begun = time.time()
            rows, window = mask(clean[part], draws, seed)
            kept |= {f"{part}_rows": rows, f"{part}_window": window}
            kept[f"{part}_truth"] = clean[part][window]
            kept[f"{part}_network"] = read_network(model, rows).astype(np.float32)
            kept[f"{part}_over"] = relatives.align(rows).astype(np.float32)
            print(part, len(rows), f"{time.time() - begun:.0f} s", flush=True)
        np.savez(path, **kept)
    return {**np.load(path), "columns": relatives.columns, "far": far.astype(np.float32)}


def weigh(data: dict, part: str, some: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """The default's chances of rows, with the relatives of `kept` alone."""
    over = data[f"{part}_over"][:, some] * kept[:, None, None, None]
    prior = data[f"{part}_network"][some].astype(float)
    columns: ColumnNumbers = data["columns"]
    p = prior * combine(over.astype(float), data[f"{part}_rows"][some], prior, columns)
    return p / p.sum(-1, keepdims=True)


def ask(reader: SetReader, data: dict, part: str, some: np.ndarray, kept: np.ndarray) -> tuple:
    p = weigh(data, part, some, kept)
    at = np.flatnonzero(kept)
    logs = reader(
        torch.from_numpy(data[f"{part}_over"][at][:, some]), torch.from_numpy(data["far"][at]),
        torch.from_numpy(data[f"{part}_rows"][some].astype(np.int64)),
        torch.from_numpy(np.log(np.maximum(p, 1e-9)).astype(np.float32)),
    )  # fmt: skip
    return p, logs


def train(data: dict, steps: int, seed: int) -> SetReader:
    torch.manual_seed(seed)
    rng, reader = np.random.default_rng(seed), SetReader()
    optimizer = torch.optim.AdamW(reader.parameters(), 3e-3, weight_decay=0.01)
    plan = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    n, begun = len(data["train_rows"]), time.time()
    for step in range(steps):
        some = np.sort(rng.choice(n, BATCH, replace=False))
        kept = rng.random(len(FOUR)) > DROPPED
        _, logs = ask(reader, data, "train", some, kept)
        hidden = torch.from_numpy(data["train_rows"][some] == NONE)
        truth = torch.from_numpy(data["train_truth"][some].astype(np.int64))
        losses = nn.functional.cross_entropy(logs.transpose(1, 2), truth, reduction="none")
        loss = ((losses * hidden).sum(1) / hidden.sum(1)).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
        optimizer.step()
        plan.step()
        if step % 100 == 99:
            print(step + 1, round(float(loss) / np.log(2), 3), f"{time.time() - begun:.0f} s",
                  flush=True)  # fmt: skip
    return reader.eval()


@torch.no_grad()
def judge(reader: SetReader | None, data: dict, kept: np.ndarray) -> np.ndarray:
    """Bits of each row of the test part."""
    rows, parts = data["test_rows"], []
    for first in range(0, len(rows), 50):
        some = np.arange(first, min(first + 50, len(rows)))
        p, logs = ask(reader or SetReader(), data, "test", some, kept)
        parts.append(p if reader is None else torch.softmax(logs.double(), -1).numpy())
    return measure_bits(np.concatenate(parts), rows, data["test_truth"])


def say(what: str, bits: np.ndarray, window: np.ndarray, beside: np.ndarray | None) -> None:
    def mean(v: np.ndarray) -> list[float]:
        each = np.array([v[window == w].mean() for w in np.unique(window)])
        half = 1.96 * each.std(ddof=1) / len(each) ** 0.5
        return [round(float(each.mean()), 4), round(float(half), 4)]

    line = {"what": what, "bits": mean(bits)}
    if beside is not None:
        line["beside the default"] = mean(bits - beside)
    print(json.dumps(line), flush=True)


def main() -> None:
    data = prepare(sys.argv[1])
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    subsets = {"all": [1, 1, 1, 1], "CBS432": [1, 0, 0, 0], "Sarb, Seub": [0, 0, 1, 1]}
    default = {}
    for name, kept in subsets.items():
        default[name] = judge(None, data, np.array(kept, bool))
        say(f"default, {name}", default[name], data["test_window"], None)
    for seed in SEEDS:
        reader = train(data, steps, seed)
        for name, kept in subsets.items():
            bits = judge(reader, data, np.array(kept, bool))
            say(f"reader of seed {seed}, {name}", bits, data["test_window"], default[name])


if __name__ == "__main__":
    main()
