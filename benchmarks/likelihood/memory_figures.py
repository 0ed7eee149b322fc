"""The figures of evaluations with a memory, kept in one file, and their curves over mask rates.

    python benchmarks/likelihood/memory_figures.py FOLDER

FOLDER has what `genodiff eval RUN --memory on|exhaustive|off --json` printed, as
GENOME-SEED.MEMORY.json (yeast_chrXIV-1.on.json). Beside this script are written memory.jsonl.xz,
a row for each, and memory-curves.svg: bits of a masked base by the share of its window that is
masked, means over seeds. Rows that are there already and not in FOLDER stay.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from commands import read_kept, write_kept  # noqa: E402

KEPT = (
    "checkpoint", "step", "seed", "repeats", "windows", "tokens", "seq_len", "fingerprint",
    "bits_per_base", "ci95_bits", "without_memory", "markov_fitted", "markov_mixture",
    "adaptive_from_train", "adaptive_mixture", "regions", "curve", "seconds", "created",
)  # fmt: skip
OF_MEMORY = ("fingerprint", "bases", "numbers", "effort")
WAYS = {
    "off": ("network alone", "C7"),
    "on": ("with memory, by index", "C0"),
    "exhaustive": ("with memory, exhaustive", "C3"),
}


def read(folder: Path) -> list[dict[str, Any]]:
    """A row for each file, in the order of their names, without paths of this machine."""
    rows = []
    for path in sorted(folder.glob("*-*.*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        name, memory = path.name.removesuffix(".json").split(".", 1)
        genome, seed = name.rsplit("-", 1)
        told = found["memory"] and {key: found["memory"][key] for key in OF_MEMORY}
        row = {"genome": genome, "training_seed": int(seed), "how": memory, "memory": told}
        rows.append(row | {key: found.get(key) for key in KEPT})
    return rows


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """A panel for each genome."""
    genomes = list(dict.fromkeys(row["genome"] for row in rows))
    figure, panels = plt.subplots(
        1, len(genomes), figsize=(4.2 * len(genomes), 4.4), sharey=True, squeeze=False
    )
    for genome, panel in zip(genomes, panels[0], strict=True):
        curves = defaultdict(list)
        for row in rows:
            if row["genome"] == genome and row["how"] in WAYS:
                at = [(one["rate_lo"] + one["rate_hi"]) / 2 for one in row["curve"]]
                bits = [one["nats"] / np.log(2) for one in row["curve"]]
                curves[row["how"]].append((at, bits))
        for way, (label, colour) in WAYS.items():
            if curves[way]:
                at, bits = np.mean(curves[way], axis=0)
                panel.plot(at, bits, ".-", color=colour, label=f"{label} ({len(curves[way])})")
        panel.set_title(genome.replace("_", " "))
        panel.set_xlabel("share of the window that is masked")
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(
            frameon=False,
            fontsize=8,
            title="training seeds in brackets",
            title_fontsize=8,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.2),
        )
    panels[0][0].set_ylabel("bits of a masked base")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    kept = HERE / "memory.jsonl.xz"
    there = [json.loads(line) for line in read_kept(kept).splitlines()]
    by_name = {
        (row["genome"], row["training_seed"], row["how"]): row
        for row in [*there, *read(Path(sys.argv[1]))]
    }
    rows = [by_name[name] for name in sorted(by_name)]
    write_kept(kept, "".join(json.dumps(row) + "\n" for row in rows))
    plt.rcParams.update({"svg.hashsalt": "memory", "svg.fonttype": "none"})
    draw(rows, HERE / "memory-curves.svg")


if __name__ == "__main__":
    main()
