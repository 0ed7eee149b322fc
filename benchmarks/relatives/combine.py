"""Ways to make one distribution of several relatives, on the same bases: yeast, chrXVI to chrXIV.

    python benchmarks/relatives/yeast_setting.py 60 8        (once: fits and alignments are kept)
    python benchmarks/relatives/combine.py 60 8

Bits of a masked base, mean over k = 1..n in strata (the bound of the exact count) and leave-one-out
(one pass: each visible base under all others). The prior is the order-0 chain: no network.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from log_linear import fit_weights, pool
from yeast_setting import FOUR, KEPT

from genodiff.memory.columns import ColumnNumbers, combine, improve, observe, start_numbers
from genodiff.memory.numbers import RelativeNumbers
from genodiff.memory.text import NONE
from genodiff.memory.tree import join_neighbours

GC = 0.383
PI = np.array([1 - GC, GC, GC, 1 - GC]) / 2
EDGES = (0.02, 0.2, 0.5, 0.8, 0.9, 0.95, 0.98)


def load(folder: Path, names: tuple[str, ...]) -> dict:
    sets = {}
    numbers = {
        n: RelativeNumbers.model_validate_json((KEPT / f"{n}.json").read_text()) for n in names
    }
    kept = {n: np.load(folder / f"{n}.npz") for n in names}
    for part in ("fit", "test"):
        z = np.load(folder / f"{part}.npz")
        for suffix in ("", "_whole"):
            sets[part + suffix] = {
                "over": [kept[n][part + suffix].astype(float) for n in names],
                "rows": z["rows"] if not suffix else z["clean"],
                "clean": z["clean"][z["window"]] if not suffix else z["clean"],
            }
    return {"sets": sets, "numbers": numbers, "names": names}


def scored(one: dict) -> np.ndarray:
    """Masked places, or all where none is masked (leave-one-out)."""
    hidden = one["rows"] == NONE
    return hidden if hidden.any() else np.ones_like(hidden)


def bits(p: np.ndarray, one: dict) -> tuple[float, float, np.ndarray]:
    here = scored(one)
    of = np.take_along_axis(p, one["clean"][..., None].astype(int), -1)[..., 0]
    rows = np.where(here, -np.log2(np.maximum(of, 1e-12)), 0).sum(1) / here.sum(1)
    return float(rows.mean()), float(rows.std() / np.sqrt(len(rows))), rows


def ratios(over: np.ndarray, numbers: RelativeNumbers) -> np.ndarray:
    """L(b) of a relative alone, by the classes of its alignment."""
    says = np.einsum("bles,esc->blc", over, numbers.emission)
    return 1 - over.sum((2, 3))[..., None] + says / PI


def identity(over: np.ndarray, numbers: RelativeNumbers) -> np.ndarray:
    return over.sum(3) @ (1 - np.array(numbers.divergence) / 0.75)


def log_features(logs: list[np.ndarray], sure: list[np.ndarray]) -> np.ndarray:
    parts = [np.broadcast_to(np.log(PI), logs[0].shape)]
    for log, at in zip(logs, sure, strict=True):
        bins = np.digitize(at, EDGES)
        parts += [np.where((bins == c)[..., None], log, 0) for c in range(len(EDGES) + 1)]
    return np.stack(parts, -2)


def fit_pool(features: np.ndarray, one: dict, most: int = 200_000) -> np.ndarray:
    here = scored(one)
    counts = np.where(here, 1 / here.sum(1, keepdims=True), 0)
    at = np.flatnonzero(here)
    at = np.random.default_rng(0).permutation(at)[:most]
    f = features.reshape(-1, *features.shape[2:])[at]
    n = f.shape[1]
    return fit_weights(f, one["clean"].reshape(-1)[at], counts.reshape(-1)[at], toward=np.ones(n))


def measure_distances(whole: dict) -> np.ndarray:
    """Changes of a place between the target and each relative, and between relatives."""
    bases = [np.eye(4)[whole["clean"]]] + [o.sum(2) for o in whole["over"]]
    n = len(bases)
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            a, b = bases[i], bases[j]
            sure = (a.max(-1) > 0.9) & (b.max(-1) > 0.9)
            p = (a.argmax(-1) != b.argmax(-1))[sure].mean() if sure.any() else 0.5
            out[i, j] = out[j, i] = -0.75 * np.log(1 - min(p, 0.7) / 0.75)
    return out


def fit_columns(
    fit: dict, whole: dict, *, plain: int, coding: int, rounds: int = 25
) -> ColumnNumbers:
    tree = join_neighbours(measure_distances(whole))
    print(" tree", tree.parent, [round(x, 3) for x in tree.length])
    numbers = start_numbers(tree, GC, plain=plain, coding=coding)
    over = np.stack([o.sum(2) for o in whole["over"]])
    prior = np.broadcast_to(PI, (*whole["rows"].shape, 4))
    seen = observe(over, whole["rows"], prior, numbers)
    last, turn = -np.inf, 0
    while turn < rounds:
        turn += 1
        numbers, value = improve(seen, numbers)
        if value - last < 2e-5:
            break
        last = value
    print(f" {turn} rounds, {value:.4f} nats")
    return numbers


def report(name: str, p: dict[str, np.ndarray], sets: dict) -> None:
    line = {"method": name}
    for part, chances in p.items():
        value, error, rows = bits(chances, sets[part])
        line[part] = [round(value, 4), round(error, 4)]
        if part == "test":
            k = (sets[part]["rows"] == NONE).mean(1)
            line["by_rate"] = [
                round(float(rows[(k >= a) & (k < a + 0.125)].mean()), 3)
                for a in np.arange(0, 1, 0.125)
            ]
    print(json.dumps(line), flush=True)


def main() -> None:
    n, draws = int(sys.argv[1]), int(sys.argv[2])
    names = tuple(sys.argv[3:]) or FOUR
    folder = KEPT / f"{n}x{draws}"
    subsets = [names[:i] for i in range(1, len(names) + 1)]
    for subset in subsets:
        data = load(folder, subset)
        sets, numbers = data["sets"], list(data["numbers"].values())
        print("==", subset, flush=True)
        parts = ("test", "test_whole")
        logs = {
            part: [
                np.log(np.maximum(ratios(o, m), 1e-9))
                for o, m in zip(sets[part]["over"], numbers, strict=True)
            ]
            for part in sets
        }
        sure = {
            part: [identity(o, m) for o, m in zip(sets[part]["over"], numbers, strict=True)]
            for part in sets
        }
        if len(subset) == 1:
            report("mixture", {p: PI * np.exp(logs[p][0]) for p in parts}, sets)
        report(
            "product",
            {p: pool(np.log(PI) + sum(logs[p])[..., None, :], np.ones(1)) for p in parts},
            sets,
        )
        weights = {}
        for part in ("fit", "fit_whole"):
            weights[part] = fit_pool(log_features(logs[part], sure[part]), sets[part])
        report(
            "log-linear",
            {p: pool(log_features(logs[p], sure[p]), weights["fit"]) for p in parts},
            sets,
        )
        report(
            "log-linear, weights of leave-one-out",
            {
                "test_whole": pool(
                    log_features(logs["test_whole"], sure["test_whole"]), weights["fit_whole"]
                )
            },
            sets,
        )
        for plain, coding in ((1, 0), (3, 0), (3, 2)):
            begun = time.time()
            columns = fit_columns(sets["fit"], sets["fit_whole"], plain=plain, coding=coding)
            out = {}
            for part in sets:
                over = np.stack([o.sum(2) for o in sets[part]["over"]])
                prior = np.broadcast_to(PI, (*sets[part]["rows"].shape, 4))
                out[part] = combine(over, sets[part]["rows"], prior, columns)
            name = f"tree, {plain} plain and {coding} coding"
            report(
                name,
                {p: pool((np.log(PI) + np.log(out[p]))[..., None, :], np.ones(1)) for p in parts},
                sets,
            )
            both = {
                p: np.stack(
                    [np.broadcast_to(np.log(PI), out[p].shape), np.log(np.maximum(out[p], 1e-9))],
                    -2,
                )
                for p in sets
            }
            w = fit_pool(both["fit"], sets["fit"])
            report(
                f"{name}, weights {w.round(3).tolist()}", {p: pool(both[p], w) for p in parts}, sets
            )
            more = {
                p: np.concatenate([both[p], log_features(logs[p], sure[p])[..., 1:, :]], -2)
                for p in sets
            }
            w = fit_pool(more["fit"], sets["fit"])
            report(f"{name}, and log-linear", {p: pool(more[p], w) for p in parts}, sets)
            (KEPT / f"columns-{len(subset)}-{plain}-{coding}.json").write_text(
                columns.model_dump_json()
            )
            print(f" {time.time() - begun:.0f} s", columns.share, columns.leave, flush=True)


if __name__ == "__main__":
    main()
