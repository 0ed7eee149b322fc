"""The figure of docs/explanation/constraint.md, from what compare.py and indels.py wrote.

python figure.py OUT.svg JUDGED.json ... INDELS.json
"""

import json
import sys
from pathlib import Path

from matplotlib import pyplot as plt

OWN = "one score"
SHOWN = {
    "phyloP LRT": ("phyloP", "s", "#c05a2c"), "phastCons": ("phastCons", "^", "#7d5ba6"),
    "LAST: counts + 1/2": ("counts of LAST's columns", "x", "#5f6b73"),
}  # fmt: skip
GENOMES = {"yeast SNVs": "yeast, natural SNVs", "yeast ": "yeast, coding", "E. coli": "E. coli",
           "chrM": "human chrM, seen in people or not"}  # fmt: skip
Row = tuple[str, dict]


def list_rows(paths: list[str]) -> list[tuple[str, list[Row]]]:
    """Sets by genome."""
    found: dict = {}
    for path in paths[:-1]:
        found |= {k: v for k, v in json.loads(Path(path).read_text()).items() if "common" not in k}
    groups: dict[str, list[Row]] = {title: [] for title in GENOMES.values()}
    for name, one in found.items():
        title = next(title for start, title in GENOMES.items() if name.startswith(start))
        short = name.split(", ")[-1].removeprefix("yeast ").removeprefix("E. coli ")
        groups[title].append((short, one))
    indels = json.loads(Path(paths[-1]).read_text())
    rows = [({"gene": "in genes"}.get(region, region + " genes"),
             {OWN: {"value": indels[region]["score"]},
              "LAST: counts + 1/2": {"value": indels[region]["gaps"]["value"]}})
            for region in ("gene", "between")]  # fmt: skip
    return [*((title, some) for title, some in groups.items() if some), ("yeast, indels", rows)]


def main() -> None:
    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "genodiff", "font.size": 11})
    target, groups = Path(sys.argv[1]), list_rows(sys.argv[2:])
    lines = sum(len(rows) + 1.2 for _, rows in groups)
    figure, axes = plt.subplots(figsize=(5.2, 0.27 * lines + 1.1), layout="constrained")
    ticks, labels, y = [], [], 0.0
    for title, rows in groups:
        axes.text(0.452, y, title, weight="bold", va="center")
        y += 1
        for name, one in rows:
            value, low, high = one[OWN]["value"]
            axes.plot([low, high], [y, y], color="#17607a", lw=3, solid_capstyle="butt", zorder=2)
            axes.plot(value, y, "o", color="#17607a", ms=7, zorder=3)
            for key, (_, shape, colour) in SHOWN.items():
                if key in one:
                    axes.plot(
                        one[key]["value"][0], y, shape, color=colour, ms=6, mfc="none", zorder=4
                    )
            ticks.append(y)
            labels.append(name)
            y += 1
        y += 0.2
    axes.axvline(0.5, color="#9aa4aa", lw=1, zorder=1)
    axes.set(yticks=ticks, yticklabels=labels, xlim=(0.45, 0.92), ylim=(y, -0.8), xlabel="AUROC")
    axes.grid(axis="x", color="#e4e8ea", lw=0.8, zorder=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)
    marks = [plt.Line2D([], [], color="#17607a", marker="o", lw=3, label="profiles, 95 % interval")]
    marks += [plt.Line2D([], [], color=c, marker=m, ls="", mfc="none", label=title)
              for title, m, c in SHOWN.values()]  # fmt: skip
    figure.legend(handles=marks, loc="outside upper center", ncols=2, frameon=False)
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main()
