"""How training draws from many genomes: by weights and a temperature, as a function of (seed, k).

Genome i has the share

    s_i ∝ weight_i · windows_i^(1 / T)

of all samples: with T = 1 and equal weights every window is drawn equally often, and a high
temperature draws every genome equally often (the temperature of multilingual models: Conneau et al.
2020, arXiv 1911.02116, with 1 / T for their alpha).

Samples come in blocks of one size. In a block genome i has floor or ceiling of its share, by
systematic rounding, so that each block obeys the shares and their mean is exact. A genome's windows
are drawn without replacement: as often as all of them fit, then one out of each of equally long
stretches. The block is shuffled. Nothing is remembered between blocks.

`survey_genomes` and `plan_genomes` say what a collection holds and how training would draw from it.
"""

import os
import shutil
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.counter import Purpose, uniforms
from genodiff.data.genomes.build import estimate_bytes, is_built
from genodiff.data.genomes.collection import find_manifest
from genodiff.data.genomes.listing import read_genome_list
from genodiff.data.genomes.store import (
    GenomesStore,
    GenomesWindows,
    find_built_folder,
    is_remote,
    open_genomes,
)
from genodiff.data.recipe import SPLITS, Recipe
from genodiff.data.windows import PHASES, Ints
from genodiff.errors import DataError, format_count
from genodiff.io.target import find_existing

MOST = 1 << 20
"""Samples in a block, at most."""


def find_shares(
    weights: NDArray[np.float64], windows: Ints, temperature: float
) -> NDArray[np.float64]:
    """The share of each genome: see the module. Genomes without windows have none."""
    if temperature <= 0:
        raise ValueError(f"temperature {temperature} is not above 0")
    size = windows.astype(np.float64)
    some = (size > 0) & (weights > 0)
    logs = np.full(len(size), -np.inf)
    logs[some] = np.log(weights[some]) + np.log(size[some]) / temperature
    if not some.any():
        return np.zeros(len(size))
    shares: NDArray[np.float64] = np.exp(logs - logs.max())
    return shares / shares.sum()


class GenomeMix:
    """The order in which training reads the windows of many genomes."""

    def __init__(self, windows: GenomesWindows, seed: int, temperature: float = 1.0) -> None:
        """Raises `DataError` where every genome that trains has the weight 0."""
        self.windows, self.seed, self.temperature = windows, seed, temperature
        self.weights = np.array([g["weight"] for g in windows.store.genomes], np.float64)
        self.size = min(windows.per_epoch, MOST)
        if not self.shares().any():
            what = "no genome with a window of the train split has a weight above 0"
            raise DataError(what, file=windows.store.source.path, fix="give some a weight of 1")

    def shares(self, phase: int = 0) -> NDArray[np.float64]:
        """The share of each genome."""
        windows = np.diff(self.windows.genome_ranks(phase))
        return find_shares(self.weights, windows, self.temperature)

    def place(self, index: Ints) -> tuple[Ints, Ints]:
        """Flat start and length of the windows of these samples."""
        starts, lengths = np.empty_like(index), np.empty_like(index)
        for block in np.unique(index // self.size):
            rows = index // self.size == block
            order, phase = _draw_block(self, int(block))
            ranks = order[index[rows] % self.size]
            starts[rows], lengths[rows] = self.windows.tiling(phase).at(ranks)
        return starts, lengths


@lru_cache(maxsize=4)
def _draw_block(mix: GenomeMix, block: int) -> tuple[Ints, int]:
    seed, size = mix.seed, mix.size
    phase = int(uniforms(seed, Purpose.WINDOW_PHASE, block, 1)[0] * PHASES)
    first = mix.windows.genome_ranks(phase)
    windows, shares = np.diff(first), mix.shares(phase)
    u = uniforms(seed, Purpose.GENOME_MIX, block, 1 + len(shares) + size)
    jitter = u[1 + len(shares) :]
    count = round_systematically(shares, size, float(u[0]))
    ranks = np.empty(size, np.int64)
    at = 0
    for genome in np.flatnonzero(count):
        n, c = int(windows[genome]), int(count[genome])
        whole, rest = divmod(c, n)
        edges = np.arange(rest + 1) * n // max(rest, 1)
        some = edges[:-1] + (jitter[at : at + rest] * np.diff(edges)).astype(np.int64)
        turned = (some + int(u[1 + genome] * n)) % n
        ranks[at : at + c] = first[genome] + np.concatenate((np.tile(np.arange(n), whole), turned))
        at += c
    order = np.argsort(uniforms(seed, Purpose.WINDOW_ORDER, block, size), kind="stable")
    return ranks[order], phase


def round_systematically(shares: NDArray[np.float64], size: int, u: float) -> Ints:
    """`size` times shares (sum 1) as whole numbers of sum `size`, exact in the mean over `u`."""
    ends = np.cumsum(shares)
    last = int(np.flatnonzero(shares)[-1])
    ends[last:] = 1.0  # what rounding left over
    return np.diff(np.floor(np.concatenate(([0.0], ends)) * size + u)).astype(np.int64)


def survey_genomes(
    store: GenomesStore, recipe: Recipe, seq_len: int, temperature: float = 1.0
) -> dict[str, Any]:
    """Of each genome and of all: bases, windows of each split, and the share of training's samples.

    Raises `DataError` where no window of the train split is usable.
    """
    n = len(store.genomes)
    windows: dict[str, Any] = {}
    notes = []
    for split in SPLITS:
        try:
            cut = GenomesWindows(store, recipe, split, seq_len)
            windows[split] = np.diff(cut.genome_ranks(0))
        except DataError as fault:
            if split == "train":
                raise
            notes.append(str(fault))
            windows[split] = np.zeros(n, np.int64)
    weights = np.array([g["weight"] for g in store.genomes], np.float64)
    shares = find_shares(weights, windows["train"], temperature)
    keys = ("name", "species", "split", "bases", "weight")
    rows = [
        {
            **{key: genome[key] for key in keys},
            **{f"{split}_windows": int(windows[split][i]) for split in SPLITS},
            "share": round(float(shares[i]), 6),
        }
        for i, genome in enumerate(store.genomes)
    ]
    return {
        "genomes": rows,
        "bases": int(store.offsets[-1]),
        "windows": {split: int(windows[split].sum()) for split in SPLITS},
        "temperature": temperature,
        "homology": store.manifest["homology"],
        "duplicates": store.manifest["duplicates"],
        "notes": [*store.manifest["notes"], *notes],
    }


def plan_genomes(
    where: str, recipe: Recipe, seq_len: int, temperature: float = 1.0
) -> dict[str, Any]:
    """What `survey_genomes` says of genomes that are built; else what building them will take.

    Nothing is built and nothing is fetched but a manifest. `disk_bytes` are still needed, of
    `free_bytes`; `to_build` counts genomes. Raises `DataError`.
    """
    if is_remote(where):
        store = open_genomes(where)
        return survey_genomes(store, recipe, seq_len, temperature) | measure_room(store.path)
    folder = Path(where)
    if not folder.is_dir():
        listed, folder = read_genome_list(where), find_built_folder(where)
        waiting = [row for row in listed.rows if not is_built(row, folder / row.name)]
        if waiting or find_manifest(folder) is None:
            room = measure_room(folder, sum(map(estimate_bytes, waiting)), len(waiting))
            rows = [
                {"name": r.name, "species": r.species, "split": r.split, "weight": r.weight}
                | {"bytes": None if r.is_remote else os.path.getsize(r.path)}
                for r in listed.rows
            ]
            to_fetch = sum(row.is_remote for row in waiting)
            return {"genomes": rows, "temperature": temperature, "to_fetch": to_fetch} | room
    store = open_genomes(str(folder))
    return survey_genomes(store, recipe, seq_len, temperature) | measure_room(folder)


def describe_plan(found: dict[str, Any], most: int = 12) -> list[str]:
    """The plan for a person to read."""
    rows = found["genomes"]
    genomes = format_count(len(rows), "genome")
    free = f"{found['free_bytes'] / 1e9:.1f} GB are free"
    if "windows" not in found:
        fetched = f", {found['to_fetch']} to fetch" if found["to_fetch"] else ""
        said = f"{genomes}, {found['to_build']:,} to build{fetched}: about "
        said += f"{found['disk_bytes'] / 1e9:.2f} GB in {found['folder']} ({free}); windows and "
        return [f"{said}shares are known when they are built (`genodiff data genomes`)"]
    train = found["windows"]["train"]
    windows = ", ".join(f"{split} {n:,}" for split, n in found["windows"].items())
    lines = [f"{genomes}, {found['bases']:,} bases; windows: {windows} ({free})"]
    shown = sorted(rows, key=lambda r: (-r["share"], r["name"]))
    for row in shown[:most]:
        by_size = row["train_windows"] / max(train, 1)
        said = f"  {row['name']:24.24s} {row['train_windows']:>12,} windows ({by_size:.2%}), "
        lines.append(f"{said}{row['share']:.2%} of the samples")
    if len(shown) > most:
        rest = sum(row["share"] for row in shown[most:])
        lines.append(f"  and {len(shown) - most:,} more, {rest:.2%} of the samples")
    return lines


def measure_room(folder: Path, needed: int = 0, to_build: int = 0) -> dict[str, Any]:
    """The folder, what is still needed there, and what its disk has."""
    free = shutil.disk_usage(find_existing(folder)).free
    told = {"folder": str(folder), "to_build": to_build, "disk_bytes": needed}
    return told | {"free_bytes": free}
