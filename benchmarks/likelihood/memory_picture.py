"""A picture of one window and the loci that a memory remembers: docs/assets/memory.png.

    python benchmarks/likelihood/memory_picture.py --fasta sacCer3.fa.gz [--out memory.png]
        [--contig chrXIV] [--start N] [--masked .5] [--seed 1]

The memory is that of the recipe's train split. Without --start, the window is the one of the contig
of which about half is remembered, from the longest loci. No network is asked.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA
from genodiff.data.dna_store import build_dna_store
from genodiff.data.recipe import load_recipe
from genodiff.memory.copying import Places, read_sources
from genodiff.memory.memory import Memory
from genodiff.memory.text import NONE, Codes
from genodiff.runs.training_memory import open_split_memory

LENGTH = 1024
SHOWN = 10
_LEAST = 25.0
GREY, DARK, COPY, OTHER = "#c9ccd1", "#2b2f36", "#0b7285", "#d9480f"


class Locus(NamedTuple):
    """Where a stretch of a window has a copy, and the base that the copy has at each place."""

    name: str
    first: int
    last: int
    sources: Codes


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fasta", type=Path, required=True)
    parser.add_argument("--recipe", default="sacCer3")
    parser.add_argument("--contig", default="chrXIV")
    parser.add_argument("--start", type=int)
    parser.add_argument("--masked", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("memory.png"))
    asked = parser.parse_args()
    store = build_dna_store(load_recipe(asked.recipe), asked.fasta)
    memory = open_split_memory(store)[0]
    number = store.names.index(asked.contig)
    contig = np.asarray(store.flat[store.offsets[number] : store.offsets[number + 1]]) & 15
    code_of = np.full(256, NONE, np.uint8)
    code_of[list(DNA.targets)] = range(4)
    codes = code_of[contig]
    start = choose_window(memory, codes, asked) if asked.start is None else asked.start
    clean = codes[start : start + LENGTH]
    seen = hide(clean, asked.masked, asked.seed + start)
    recalled = memory.recall(seen[None])
    loci = find_loci(memory, seen)
    draw(f"{asked.contig}:{start + 1:,}-{start + LENGTH:,}", clean, seen, recalled, loci, asked.out)
    print(f"{asked.out}: {asked.contig} from {start}, {len(loci)} loci")


def hide(clean: Codes, share: float, seed: int) -> Codes:
    """The window with that share of its bases masked."""
    return np.where(np.random.default_rng(seed).random(len(clean)) < share, NONE, clean).astype(
        np.uint8
    )


def choose_window(memory: Memory, codes: Codes, asked: argparse.Namespace) -> int:
    best = (-1.0, 0)
    for start in range(0, len(codes) - LENGTH, LENGTH):
        seen = hide(codes[start : start + LENGTH], asked.masked, asked.seed + start)
        copied = 1 - memory.recall(seen[None]).background[0]
        if 0.35 < copied.mean() < 0.65:
            loci = find_loci(memory, seen)[:SHOWN]
            best = max(best, (float(sum(one.last - one.first for one in loci)), start))
    return best[1]


def find_loci(memory: Memory, seen: Codes) -> list[Locus]:
    """The diagonals that resemble a stretch of a window, longest first."""
    ((forward, backward),) = memory.find_all(seen[None])
    found = []
    for strand, places in enumerate((forward, backward)):
        for place in places.tolist():
            pair: tuple[Places, Places] = (np.array([place]), np.zeros(0, np.int64))
            pair = pair if strand == 0 else (pair[1], pair[0])
            sources = read_sources(memory.text, len(seen), pair, (0, 0))[:, 0]
            first, last, score = find_stretch(seen, sources)
            if score >= _LEAST:
                at = place + (first if strand == 0 else len(seen) - last)
                contig, position = memory.text.locate(at)
                sign = "+-"[strand]
                name = f"{contig}:{position + 1:,}-{position + last - first:,} {sign}"
                found.append(Locus(name, first, last, sources))
    found.sort(key=lambda one: one.first - one.last)
    return found


def find_stretch(seen: Codes, sources: Codes) -> tuple[int, int, float]:
    """The stretch of a diagonal that agrees best: start, end, and its score.

    A visible base that agrees counts 1, one that does not −1.5.
    """
    known = (seen != NONE) & (sources != NONE)
    score = np.where(known, np.where(seen == sources, 1.0, -1.5), 0)
    best, total, first, found = 0.0, 0.0, 0, (0, 0)
    for i, one in enumerate(score.tolist()):
        if total <= 0:
            total, first = 0.0, i
        total += one
        if total > best:
            best, found = total, (first, i + 1)
    return *found, best


def draw(
    name: str, clean: Codes, seen: Codes, recalled: object, loci: list[Locus], out: Path
) -> None:
    w0, copy = (np.asarray(part)[0] for part in recalled)  # type: ignore[attr-defined]
    shown = choose_shown(loci)
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(9, 1.6 + 0.34 * (len(shown) + 1) + 1.6), sharex=True, layout="constrained",
        height_ratios=[0.34 * (len(shown) + 1.6), 1.7],
    )  # fmt: skip
    draw_ticks(top, 0, np.flatnonzero(seen != NONE), DARK)
    labels = ["the window: what is visible"]
    for row, one in enumerate(shown, 1):
        inside = np.arange(one.first, one.last)
        top.hlines(row, one.first, one.last, color=GREY, lw=1.2, zorder=0)
        visible = inside[seen[inside] != NONE]
        same = one.sources[visible] == seen[visible]
        draw_ticks(top, row, visible[same], COPY)
        draw_ticks(top, row, visible[~same], OTHER, 0.42)
        labels.append(one.name)
    top.set_yticks(range(len(labels)), labels, fontsize=8)
    top.set_ylim(len(shown) + 0.7, -0.7)
    top.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        top.spines[side].set_visible(False)
    top.set_title(
        f"{name}, half of it masked, and {len(shown)} of {len(loci)} loci of the train split that "
        "it resembles.\nBlue: a visible base agrees. Red: it does not.", fontsize=9, loc="left",
    )  # fmt: skip
    hidden = np.flatnonzero((seen == NONE) & (clean != NONE))
    bottom.fill_between(np.arange(len(w0)), 1 - w0, color=COPY, alpha=0.25, lw=0, step="mid")
    bottom.plot(hidden, copy[hidden, clean[hidden]], ".", ms=3, color=DARK)
    bottom.set_ylim(0, 1.03)
    bottom.set_xlim(0, len(w0))
    bottom.set_ylabel("chance", fontsize=9)
    bottom.set_xlabel("base of the window", fontsize=9)
    bottom.set_title(
        "Area: the chance that a base is a copy. Dots: what of it each masked base's true letter "
        "gets.", fontsize=9, loc="left",
    )  # fmt: skip
    for side in ("top", "right"):
        bottom.spines[side].set_visible(False)
    bottom.tick_params(labelsize=8)
    figure.savefig(out, dpi=150)


def choose_shown(loci: list[Locus]) -> list[Locus]:
    """The longest, but of each stretch of the window no more than three; from left to right."""
    shown: list[Locus] = []
    for one in loci:
        alike = [
            other
            for other in shown
            if 2 * (min(one.last, other.last) - max(one.first, other.first)) > one.last - one.first
        ]
        if len(alike) < 3 and len(shown) < SHOWN:
            shown.append(one)
    return sorted(shown, key=lambda one: one.first)


def draw_ticks(
    ax: plt.Axes, row: int, at: NDArray[np.int64], colour: str, half: float = 0.28
) -> None:
    ax.vlines(at, row - half, row + half, color=colour, lw=0.7)


if __name__ == "__main__":
    main()
