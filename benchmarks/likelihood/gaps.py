"""Gaps of 200 bases in windows of a held-out chromosome, filled in three ways.

A network fills them alone, and with its memory. The third way copies the place of the train split
that the flanks resemble most.

    python benchmarks/likelihood/gaps.py RUN [--gaps 40] [--steps 50] -o gaps.json

Windows are of three classes: repeat (24-mers of the train split cover a quarter of them or more),
family (no repeat, and the best place of the train split has half of the flanks' bases), unique (the
others). The copy is chosen by the flanks alone: places that share 11-mers with them are compared
base by base, on both strands, and each flank may shift by up to 32 bases for an insertion or a
deletion. An identity is the share of a gap's bases that are the real ones. The seed draws windows
and fillings.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

import genodiff
from genodiff.memory.text import NONE, Codes, turn_codes
from genodiff.runs.folder import find_git_revision
from genodiff.runs.memory_fit import CLASSES, classify
from genodiff.runs.training_memory import cut_windows, list_stretches, open_train_memory
from genodiff.words import pack_words

KINDS = ("repeat", "family", "unique")
K = 11
VERIFIED = 500
SHIFT = 32
FAMILY = 0.5
GAP = 200


class Copy(NamedTuple):
    """What stands in the gap at the best place, and the identity of the flanks there."""

    codes: Codes
    identity: float


class Places:
    """The train split, read for places that resemble a window's flanks."""

    def __init__(self, stretches: list[Codes]) -> None:
        wall = np.full(4096, NONE, np.uint8)
        parts = [wall]
        for codes in stretches:
            parts += [np.asarray(codes).astype(np.uint8), wall]
        self.text = np.concatenate(parts)
        words, whole = pack_words(self.text, K)
        starts = np.flatnonzero(whole)
        order = np.argsort(words[starts], kind="stable")
        self.at, self.words = starts[order], words[starts][order]

    def find(self, window: Codes) -> Copy:
        """The best copy for a window with a gap (codes of NONE), of either strand."""
        first, second = self._search(window), self._search(turn_codes(window))
        if first.identity >= second.identity:
            return first
        return second._replace(codes=turn_codes(second.codes))

    def _search(self, window: Codes) -> Copy:
        words, whole = pack_words(window, K)
        mine = np.flatnonzero(whole)
        low = np.searchsorted(self.words, words[mine], "left")
        high = np.searchsorted(self.words, words[mine], "right")
        hits = [self.at[a:b] - i for a, b, i in zip(low, high, mine, strict=True) if b > a]
        gap = np.flatnonzero(window >= NONE)
        left, right = np.arange(gap[0]), np.arange(gap[-1] + 1, len(window))
        if not hits:
            return Copy(np.full(len(gap), NONE, np.uint8), 0.0)
        places, counts = np.unique(np.concatenate(hits), return_counts=True)
        places = places[np.argsort(-counts, kind="stable")[:VERIFIED]]
        best = max(places.tolist(), key=lambda p: self._same(window, left, p) + self._same(
            window, right, p))  # fmt: skip
        near = range(best - SHIFT, best + SHIFT + 1)
        at = [
            max(near, key=lambda p: (self._same(window, flank, p), -abs(p - best)))
            for flank in (left, right)
        ]
        half = len(gap) // 2
        copied = np.concatenate([self._read(gap[:half], at[0]), self._read(gap[half:], at[1])])
        same = self._same(window, left, at[0]) + self._same(window, right, at[1])
        return Copy(copied, same / (len(left) + len(right)))

    def _read(self, where: NDArray[np.int64], place: int) -> Codes:
        return self.text[np.clip(where + place, 0, len(self.text) - 1)]

    def _same(self, window: Codes, where: NDArray[np.int64], place: int) -> int:
        return int(np.count_nonzero(self._read(where, place) == window[where]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--gaps", type=int, default=40, help="of each class")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, required=True)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    begun = time.process_time()
    model = genodiff.load(asked.run, device="cpu")
    store = open_train_memory(model.trained).store
    assert store is not None
    windows = cut_windows(store, "test", model.trained.config.data.seq_len)
    places = Places([codes[:] for _, _, codes in list_stretches(store, "train")])
    kinds = classify(store, windows)
    middle = (windows.shape[1] - GAP) // 2
    gap = slice(middle, middle + GAP)
    rng = np.random.default_rng(asked.seed)
    chosen: dict[str, list[int]] = {kind: [] for kind in KINDS}
    copies: dict[int, Copy] = {}
    for w in rng.permutation(len(windows)).tolist():
        is_repeat = CLASSES[kinds[w]] == "repeat"
        if len(chosen["repeat"]) >= asked.gaps and is_repeat:
            continue
        hidden = windows[w].copy()
        hidden[gap] = NONE
        copies[w] = places.find(hidden)
        alike = "family" if copies[w].identity >= FAMILY else "unique"
        kind = "repeat" if is_repeat else alike
        if len(chosen[kind]) < asked.gaps:
            chosen[kind].append(w)
    rows = [w for kind in KINDS for w in chosen[kind]]
    texts = ["".join("ACGT"[c] for c in windows[w]) for w in rows]
    templates = [t[:middle] + "N" * GAP + t[middle + GAP :] for t in texts]
    said: dict[str, list[float]] = {
        "best place of the flanks": [
            float((copies[w].codes == windows[w][gap]).mean()) for w in rows
        ]
    }
    ways: dict[str, dict[str, Any]] = {
        "network alone": {"memory": "off"},
        "network alone, likeliest bases": {"memory": "off", "temperature": 0.0},
        "with memory": {"memory": "on"},
        "with memory, likeliest bases": {"memory": "on", "temperature": 0.0},
    }
    for name, settings in ways.items():
        filled = model.infill(templates, steps=asked.steps, seed=asked.seed, **settings)
        said[name] = [
            sum(a == b for a, b in zip(x[gap], y[gap], strict=True)) / GAP
            for x, y in zip(filled, texts, strict=True)
        ]
        print(name, flush=True)
    tables: dict[str, Any] = {}
    for kind in KINDS:
        mine = [i for i, w in enumerate(rows) if w in set(chosen[kind])]
        values = {name: np.array(v)[mine] for name, v in said.items()}
        best = values["with memory, likeliest bases"]
        against = {
            f"minus {name}": best - values[name]
            for name in ("best place of the flanks", "network alone, likeliest bases")
        }
        tables[kind] = {
            "gaps": len(mine),
            "flank identity": describe(np.array([copies[rows[i]].identity for i in mine])),
            **{name: describe(v) for name, v in {**values, **against}.items()},
        }
        print(kind, json.dumps(tables[kind]), flush=True)
    told = {
        "run": asked.run.name, "checkpoint": model.trained.digest, "seed": asked.seed,
        "steps": asked.steps, "commit": find_git_revision(), "cpu_s": time.process_time() - begun,
        "kinds": tables, "identities": said, "windows": chosen,
    }  # fmt: skip
    asked.output.write_text(json.dumps(told, indent=1) + "\n")


def describe(values: NDArray[np.float64]) -> list[float]:
    """Mean and standard error over gaps."""
    return [float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))]


if __name__ == "__main__":
    main()
