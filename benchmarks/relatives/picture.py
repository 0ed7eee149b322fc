"""The picture of the README: constraint between GAL10 and GAL1 of yeast, from four relatives.

    python benchmarks/relatives/picture.py --fasta sacCer3.fa.gz --relatives A.fa.gz B.fa.gz ...
        [--out docs/assets/constraint.png]

Runs `genodiff constraint` and `genodiff tracks none` on the region, and draws what they wrote.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D

CONTIG, WIDE, NEAR = "chrII", (277_700, 279_700), (278_562, 278_690)
GENES = [("GAL10", 276_252, 278_352, -1), ("GAL1", 279_020, 280_607, 1)]
COLOURS = dict(zip("ACGT", ("#1b7f3b", "#0b5cad", "#a3690b", "#b3261e"), strict=True))
CODING, DARK, RED = "#0b6e69", "#22313f", "#c0392b"
SPECIES = {"Sarb": "S. arboricola", "Seub": "S. eubayanus", "Spar": "S. paradoxus"}
LEAST_ALIGNED = 0.05
MEAN = 9
GAL4 = re.compile(r"(?=CG[GC].{11}CCG)")


def run(verb: str, words: list[str], region: tuple[int, int], out: Path) -> Any:
    """The arrays that a verb writes for a region."""
    place = f"{CONTIG}:{region[0] + 1}-{region[1]}"
    command = [sys.executable, "-m", "genodiff", verb, *words, "--region", place]
    subprocess.run([*command, "--format", "npz", "-o", str(out)], check=True)
    return np.load(out / "tracks.npz")


def draw_letter(axes: Axes, letter: str, x: float, y: float, height: float) -> None:
    """A letter of width .94 and the given height."""
    path = TextPath((0, 0), letter, size=1, prop=FontProperties(weight="bold"))
    box = path.get_extents()
    if height < 0.01:
        return
    fit = Affine2D().translate(-box.x0, -box.y0).scale(0.94 / box.width, height / box.height)
    moved = fit.translate(x + 0.03, y).transform_path(path)
    axes.add_patch(PathPatch(moved, color=COLOURS[letter], lw=0))


def main() -> None:
    """Runs the two verbs and draws the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--fasta", required=True)
    parser.add_argument("--relatives", nargs="+", required=True)
    parser.add_argument("--out", default="docs/assets/constraint.png")
    asked = parser.parse_args()
    words = ["--relatives", *asked.relatives]
    with tempfile.TemporaryDirectory() as folder:
        wide = run("constraint", [asked.fasta, *words], WIDE, Path(folder, "wide"))
        told = ["none", "--fasta", asked.fasta, *words]
        near = run("tracks", told, NEAR, Path(folder, "near"))
        draw(dict(wide), dict(near), asked.out)


def name_species(name: str) -> str:
    """`Spar_CBS432` as a reader knows it."""
    short, _, strain = name.partition("_")
    return f"{SPECIES.get(short, short)} {strain}".strip()


def draw(wide: dict[str, Any], near: dict[str, Any], out: str) -> None:
    """The picture: 2 kb of constraint above 128 bases of what the relatives expect."""
    plt.rcParams.update({"font.family": "DejaVu Sans", "font.size": 10, "text.color": DARK})
    figure, (a, b, c) = plt.subplots(
        3, 1, figsize=(12, 5.4), height_ratios=[2.2, 2.2, 0.8], layout="constrained"
    )
    x, rs = np.arange(*WIDE), np.nan_to_num(wide["rs"].astype(float))
    smooth = np.convolve(rs, np.ones(MEAN) / MEAN, "same")
    a.fill_between(x, smooth, 0, where=smooth > 0, color=CODING, lw=0)
    a.fill_between(x, smooth, 0, where=smooth < 0, color="#c9d1d6", lw=0)
    low, high = float(smooth.min()), float(smooth.max())
    a.set(xlim=WIDE, ylim=(low - 0.55 * (high - low), high * 1.1), yticks=[-1, 0, 1])
    a.set_ylabel(f"rejected substitutions\n(mean of {MEAN} bases)")
    at = low - 0.3 * (high - low)
    for name, start, end, strand in GENES:
        start, end = max(start, WIDE[0]), min(end, WIDE[1])
        a.add_patch(
            Rectangle(
                (start, at - 0.06 * (high - low)),
                end - start,
                0.15 * (high - low),
                color="#30506b",
                lw=0,
            )
        )
        arrow = "→" if strand > 0 else "←"
        label = f"{name} {arrow}"
        a.text(
            (start + end) / 2,
            at + 0.01 * (high - low),
            label,
            ha="center",
            va="center",
            color="white",
            fontsize=9,
        )
    a.axvspan(*NEAR, color="#f2c14e", alpha=0.35, lw=0)
    a.set_title(
        f"Evolutionary constraint of yeast {CONTIG}:{WIDE[0]:,}–{WIDE[1]:,} from "
        f"{sum(k.startswith('relative_') for k in near)} unaligned genomes of related species",
        loc="left",
        fontsize=12,
    )
    letters = near["letters"].tobytes().decode().upper()
    for hit in GAL4.finditer(letters):
        b.axvspan(hit.start(), hit.start() + 17, color="#f2c14e", alpha=0.35, lw=0)
        b.text(hit.start() + 8.5, 2.06, "Gal4", ha="center", fontsize=9)
    for i, (chances, bits) in enumerate(zip(near["p"], near["information"], strict=True)):
        y = 0.0
        for k in np.argsort(chances):
            draw_letter(b, "ACGT"[k], i, y, float(chances[k] * bits))
            y += float(chances[k] * bits)
    b.set(xlim=(0, len(letters)), ylim=(0, 2.3), yticks=[0, 1, 2], ylabel="expected base\n(bits)")
    strips = sorted(k for k in near if k.startswith("relative_"))
    strips = [k for k in strips if np.abs(np.nan_to_num(near[k])).mean() > LEAST_ALIGNED]
    for row, name in enumerate(strips):
        values = np.nan_to_num(near[name])
        for sign, colour in ((1, CODING), (-1, RED)):
            height = np.where(sign * values > 0, np.abs(values), 0) * 0.8
            c.bar(np.arange(len(values)) + 0.5, height, 1, bottom=-row, color=colour, lw=0)
    c.set(
        xlim=(0, len(letters)),
        ylim=(-len(strips) + 0.9, 0.9),
        yticks=[0.4 - r for r in range(len(strips))],
        yticklabels=[name_species(name.removeprefix("relative_")) for name in strips],
    )
    ticks = np.arange(-(-NEAR[0] // 20) * 20, NEAR[1], 20)
    for axes in (b, c):
        axes.set_xticks([t - NEAR[0] for t in ticks], [f"{t:,}" for t in ticks])
    b.tick_params(labelbottom=False)
    c.set_xlabel("green: the same base as S. cerevisiae · red: another base · empty: not aligned")
    for axes in (a, b, c):
        axes.spines[["top", "right"]].set_visible(False)
    a.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    figure.savefig(out, dpi=110)


if __name__ == "__main__":
    main()
