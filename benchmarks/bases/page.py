"""The tables of RESULTS.md, of lines of `run.py`, on stdout.

    python benchmarks/bases/page.py OUT.jsonl [CLASSES.jsonl]

f1 = 2 R / (T + S) of true, said and right. Its interval is over seeds and blocks of 10,000 bases
(`statistics.seeds`), with f1 linearised in the blocks' counts; a row without seeds has the blocks
alone. A difference is on the same blocks, and on the same seeds where both have them. Intervals of
the lines of `classes.py` are over seeds alone: a test part has one AUPRC.
"""

import json
import sys
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from genodiff.statistics.seeds import JointEstimate, estimate_mean

LEVELS = ("bases", "exons", "genes")
PAIRS = [("pretrained", "scratch"), ("pretrained", "cnn"), ("pretrained", "lora"),
         ("relatives", "pretrained"), ("relatives", "relatives, scratch"),
         ("relatives", "orf"), ("relatives", "conserved orfs"),
         ("relatives", "augustus"), ("conserved orfs", "augustus"),
         ("pretrained", "hmm"), ("pretrained", "orf")]  # fmt: skip


def spread(counts: np.ndarray) -> np.ndarray:
    """f1 as a mean over blocks: (seeds, blocks) of (seeds, blocks, 3) true, said and right."""
    true, said, right = np.moveaxis(counts.astype(np.float64), -1, 0)
    both = (true + said).mean(1, keepdims=True)
    f1 = 2 * right.mean(1, keepdims=True) / both
    return f1 + (2 * right - f1 * (true + said)) / both


def estimate(parts: np.ndarray) -> JointEstimate:
    """The mean of (seeds, blocks)."""
    parts = parts if len(parts) > 1 else np.repeat(parts, 2, 0)
    n = parts.shape[1]
    return estimate_mean(parts.mean(1), np.atleast_2d(np.cov(parts)) / n, n - 1)


def spell(one: JointEstimate, least: float = -1.0) -> str:
    low, high = (min(max(x, least), 1.0) for x in one.ci95 or (one.value, one.value))
    return f"{100 * one.value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def show_classes(path: Path) -> None:
    """The mean AUPRC over classes but `none`, and differences on the same seeds."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for task in dict.fromkeys(one["task"] for one in lines):
        rows: dict[str, dict[int, dict]] = {}
        for one in (one for one in lines if one["task"] == task):
            rows.setdefault(one["row"], {})[one["seed"]] = one
        print(f"\n| {task} | seeds | weights trained | CPU s | peak MB | AUPRC |")
        print("|---|---|---|---|---|---|")
        means = {
            row: {
                seed: float(
                    np.mean([v for k, v in one["auprc"].items() if k != "none" and v is not None])
                )
                for seed, one in some.items()
            }
            for row, some in rows.items()
        }
        for row, some in rows.items():
            told = some[min(some)]
            about = [row, len(some), f"{told['trained']:,}", told["seconds"], told["peak_mb"]]
            cells = [*map(str, about), over_seeds(list(means[row].values()))]
            print("| " + " | ".join(cells) + " |")
        for one, other in (("pretrained", "lora"), ("pretrained", "scratch")):
            both = means.get(one, {}).keys() & means.get(other, {}).keys()
            if len(both) > 1:
                apart = [means[one][seed] - means[other][seed] for seed in sorted(both)]
                print(f"\n{one} − {other}, {len(both)} seeds: {over_seeds(apart)}")


def over_seeds(values: list[float]) -> str:
    """The mean and its interval by Student's t, in hundredths."""
    n, mean = len(values), float(np.mean(values))
    reach = float(stdtrit(n - 1, 0.975) * np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else 0.0
    return f"{100 * mean:.1f} [{100 * (mean - reach):.1f}, {100 * (mean + reach):.1f}]"


def main() -> None:
    rows: dict[str, list[dict]] = {}
    for line in Path(sys.argv[1]).read_text().splitlines():
        one = json.loads(line)
        rows.setdefault(one["row"], []).append(one)
    counts = {}
    for name, some in rows.items():
        counts[name] = np.array([one["counts"] for one in some])
        if "without_codons" in some[0]:
            counts[f"{name}, --ends any"] = np.array([one["without_codons"] for one in some])
    print("| row | seeds | weights trained | CPU s a fit | f1 of bases | of exons | of genes "
          "| genes: sensitivity, precision |\n|---|---|---|---|---|---|---|---|")  # fmt: skip
    for name, values in counts.items():
        told = rows[name.partition(", --")[0]][0]
        cells = [spell(estimate(spread(values[:, :, level])), 0.0) for level in range(len(LEVELS))]
        true, said, right = values[:, :, 2].sum((0, 1))
        both = f"{100 * right / true:.1f}, {100 * right / max(said, 1):.1f}"
        about = [name, str(len(values)), f"{told['trained']:,}" if "trained" in told else "",
                 str(told.get("fit_seconds", ""))]  # fmt: skip
        print("| " + " | ".join([*about, *cells, both]) + " |")
    print("\n| difference of f1 | bases | genes |\n|---|---|---|")
    for one, other in PAIRS:
        if one not in counts or other not in counts:
            continue
        a, b = counts[one], counts[other]
        n = min(len(a), len(b)) if "seed" in rows[other][0] and len(b) > 1 else len(a)
        b = b[:n] if len(b) > 1 else np.repeat(b, n, 0)
        cells = [spell(estimate(spread(a[:n, :, k]) - spread(b[:, :, k]))) for k in (0, 2)]
        print(f"| {one} − {other} | " + " | ".join(cells) + " |")
    if len(sys.argv) > 2:
        show_classes(Path(sys.argv[2]))


if __name__ == "__main__":
    main()
