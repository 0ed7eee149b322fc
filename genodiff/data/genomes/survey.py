"""What a collection of genomes holds and how training would draw from it, as plain values."""

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from genodiff.data.genomes.build import estimate_bytes, is_built
from genodiff.data.genomes.collection import find_manifest
from genodiff.data.genomes.listing import read_genome_list
from genodiff.data.genomes.mixing import find_shares
from genodiff.data.genomes.remote import is_remote
from genodiff.data.genomes.store import (
    GenomesStore,
    GenomesWindows,
    find_built_folder,
    open_genomes,
)
from genodiff.data.recipe import SPLITS, Recipe
from genodiff.errors import DataError, format_count
from genodiff.io.target import find_existing


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
    return {
        "folder": str(folder),
        "to_build": to_build,
        "disk_bytes": needed,
        "free_bytes": shutil.disk_usage(find_existing(folder)).free,
    }
