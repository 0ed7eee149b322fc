"""The yeast setting: windows of chrXVI (fit) and chrXIV (test), masked, and what relatives say.

Every figure of `combine.py` is of these windows. What is worked out is kept in a folder.
"""

import csv
import gzip
import os
import time
from pathlib import Path

import numpy as np

from genodiff.memory.alignment import fit_relative
from genodiff.memory.fast import align_in_c
from genodiff.memory.memory import Memory
from genodiff.memory.numbers import MemoryNumbers, RelativeNumbers
from genodiff.memory.search import Effort
from genodiff.memory.text import NONE

SHARED = Path(os.environ["GENODIFF_SHARED"]) / "data"
KEPT = Path(os.environ.get("RELATIVES_KEPT", "/tmp/copies"))
LENGTH = 1024
FOUR = ("Spar_CBS432", "Spar_UFRJ50816", "Sarb_H6", "Seub_FM1318_orfs")
SEARCH = MemoryNumbers(
    copies=0.92, start=0.021, end=0.0056, shift=0.0105,
    divergence=(0.0008, 0.08, 0.14, 0.245), share=(0.04, 0.21, 0.50, 0.25),
)  # fmt: skip
CODE = np.full(256, NONE, np.uint8)
for _i, _c in enumerate("ACGT"):
    CODE[ord(_c)] = CODE[ord(_c.lower())] = _i


def read_genome(path: Path) -> dict[str, np.ndarray]:
    parts: dict[str, list[bytes]] = {}
    with gzip.open(path, "rb") as lines:
        for line in lines:
            if line[:1] == b">":
                name = line[1:].split()[0].decode()
                parts[name] = []
            else:
                parts[name].append(line.strip())
    return {n: CODE[np.frombuffer(b"".join(p), np.uint8)] for n, p in parts.items()}


def read_table(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


def open_relative(name: str, effort: Effort | None = None) -> Memory:
    (path,) = (SHARED / "relatives").glob(f"*/{name}.fa.gz")
    genome = read_genome(path)
    memory = Memory.build([(n, 0, c) for n, c in genome.items()], numbers=SEARCH)
    return memory.with_effort(effort or Effort(most=64))


def cut(contig: str, n: int) -> np.ndarray:
    return cut_codes(read_genome(SHARED / "genomes" / "sacCer3.fa.gz")[contig], n)


def cut_codes(codes: np.ndarray, n: int) -> np.ndarray:
    """At most n windows without N, evenly spread."""
    rows = codes[: len(codes) // LENGTH * LENGTH].reshape(-1, LENGTH)
    rows = rows[(rows < NONE).all(1)]
    return rows[np.linspace(0, len(rows) - 1, n).astype(int)] if n < len(rows) else rows


def mask(clean: np.ndarray, draws: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Each window masked `draws` times, k in strata; and each row's window."""
    rng = np.random.default_rng(seed)
    rows, window = [], []
    for w, x in enumerate(clean):
        for j in range(draws):
            k = 1 + int((j + rng.random()) / draws * len(x))
            rows.append(np.where(rng.permutation(len(x)) < k, NONE, x).astype(np.uint8))
            window.append(w)
    return np.stack(rows), np.array(window)


def align_rows(memory: Memory, rows: np.ndarray, numbers: RelativeNumbers) -> np.ndarray:
    """(B, L, E, 4)"""
    over = align_in_c(memory.text, memory.prepare(rows), memory.find_all(rows), numbers)[0]
    return over.astype(np.float32)


def make_setting(n: int, draws: int, names: tuple[str, ...], fit_windows: int = 60) -> Path:
    """Fit each relative's numbers and align all rows; kept in a file for each relative."""
    folder = KEPT / f"{n}x{draws}"
    folder.mkdir(parents=True, exist_ok=True)
    sets = {}
    for part, contig, seed in (("fit", "chrXVI", 1), ("test", "chrXIV", 2)):
        clean = cut(contig, n)
        rows, window = mask(clean, draws, seed)
        sets[part] = (clean, rows, window)
        np.savez(folder / f"{part}.npz", clean=clean, rows=rows, window=window)
    for name in names:
        path = folder / f"{name}.npz"
        if path.exists():
            continue
        begun = time.time()
        memory = open_relative(name)
        known = KEPT / f"{name}.json"
        if known.exists():
            numbers = RelativeNumbers.model_validate_json(known.read_text())
        else:
            clean = cut("chrXVI", fit_windows)
            numbers = fit_relative(
                memory.text, memory.prepare(clean), memory.find_all(clean), RelativeNumbers(),
                tell=print,
            )  # fmt: skip
            known.write_text(numbers.model_dump_json())
        print(name, numbers, f"{time.time() - begun:.0f} s", flush=True)
        kept = {}
        for part, (clean, rows, _) in sets.items():
            kept[part] = align_rows(memory, rows, numbers)
            kept[part + "_whole"] = align_rows(memory, clean, numbers)
        np.savez(path, **kept)
        print(name, f"{time.time() - begun:.0f} s", flush=True)
    return folder


if __name__ == "__main__":
    import sys

    make_setting(int(sys.argv[1]), int(sys.argv[2]), tuple(sys.argv[3:]) or FOUR)
