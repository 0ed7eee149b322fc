"""Many genomes: memory, one pass of the disk, kills, weights and temperature, leaks.

    python benchmarks/robustness/many_genomes.py REAL.fa[.gz] ... --n 300 --bases 200000 --kills 20

Genomes are cut from the real ones that are given and mutated: three copies of each stretch, each
with changes of its own at 1 to 5 % of the bases, every other one turned. The checker of leaks is
code of its own: it knows which stretch a genome was cut from, and it counts all 24-mers of what is
held out, not a sample. Prints an object of JSON, and ends with 1 where a target is missed; with
--results FOLDER it is a row of results there.
"""

import argparse
import gzip
import hashlib
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from genodiff.data.genomes.collection import build_collection, read_splits
from genodiff.data.genomes.listing import read_genome_list
from genodiff.data.genomes.mixing import GenomeMix
from genodiff.data.genomes.store import GenomesWindows, open_genomes
from genodiff.data.recipe import Recipe

HERE = Path(__file__).resolve().parent
_ABOUT = """Genomes cut from real ones and mutated, three copies of each stretch: built, killed in
the building, drawn by weight and temperature at 1, 2 and 100; leaks by a checker of its own."""
COPIES, TILE, K = 3, 1024, 24
LETTERS = np.frombuffer(b"ACGT", np.uint8)
TURN = bytes.maketrans(b"ACGT", b"TGCA")
Sequences = dict[str, bytes]


def read_real(paths: list[str]) -> list[bytes]:
    """The contigs of FASTA files, without their N and lower case."""
    found = []
    for path in paths:
        text = Path(path).read_bytes()
        if path.endswith(".gz"):
            text = gzip.decompress(text)
        for record in text.split(b">")[1:]:
            sequence = b"".join(record.split(b"\n")[1:]).upper()
            found.append(bytes(c for c in sequence if c in b"ACGT"))
    return found


def write_genomes(folder: Path, real: list[bytes], n: int, bases: int) -> dict[str, int]:
    """`n` FASTA files of two contigs and their list; which stretch each genome is a copy of."""
    rng = np.random.default_rng(22)
    stretches = [s[a : a + bases] for s in real for a in range(0, len(s) - bases + 1, bases)]
    order = rng.permutation(len(stretches))[: -(-n // COPIES)]
    if len(order) * COPIES < n:
        sys.exit(f"the files have {len(stretches)} stretches of {bases} bases: give more")
    lines, family = ["path\tweight\tspecies"], {}
    for i in range(n):
        stretch = int(order[i // COPIES])
        copy = np.frombuffer(stretches[stretch], np.uint8).copy()
        size = int(len(copy) * rng.uniform(0.5, 1))
        copy = copy[:size]
        hit = rng.random(size) < rng.uniform(0.01, 0.05) * 4 / 3
        copy[hit] = LETTERS[rng.integers(0, 4, int(hit.sum()))]
        text = copy.tobytes()
        if i % 2:
            text = text.translate(TURN)[::-1]
        half = size // 2
        name = f"g{i:04d}"
        record = b">c0\n%b\n>c1\n%b\n" % (text[:half], text[half:])
        (folder / f"{name}.fa").write_bytes(record)
        lines.append(f"{name}.fa\t{1 + i % 4}\ts{stretch}")
        family[name] = stretch
    (folder / "list.tsv").write_text("\n".join(lines) + "\n")
    return family


def begin_build(listed: Path, out: Path, told: Path | None = None) -> int:
    """Fork a child that builds, one genome at a time; its pid. `told`: what it read and took."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        before = count_read()
        began = time.monotonic()
        build_collection(read_genome_list(listed), out)
        if told is not None:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            row = {"seconds": time.monotonic() - began, "read": count_read() - before}
            told.write_text(json.dumps(row | {"peak_bytes": peak}))
        code = 0
    finally:
        os._exit(code)


def count_read() -> int:
    """Bytes that this process has read by system calls."""
    return int(Path("/proc/self/io").read_text().split("rchar: ")[1].split()[0])


def hash_tree(folder: Path) -> dict[str, str]:
    """sha256 of every file but locks."""
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.suffix != ".lock"
    }


def kill_builds(listed: Path, out: Path, kills: int, seconds: float) -> int:
    """Kill builds of one folder after random times, then let one end; how many were killed."""
    chance, killed = random.Random(22), 0
    while killed < kills:
        pid = begin_build(listed, out)
        time.sleep(chance.uniform(0.02, 1.2) * seconds / kills)
        os.kill(pid, signal.SIGKILL)
        killed += os.waitpid(pid, 0)[1] == signal.SIGKILL
        if (out / "manifest.json").exists():
            break
    while os.waitpid(begin_build(listed, out), 0)[1]:
        print("a build ended with a fault", file=sys.stderr)
    return killed


def measure_draws(out: Path, temperature: float, samples: int = 200_000) -> float:
    """How far a genome's count is from weight x windows^(1/T), in deviations of drawing by lot."""
    store = open_genomes(out)
    windows = GenomesWindows(store, Recipe(name="own"), "train", TILE)
    starts, _ = GenomeMix(windows, 5, temperature).place(np.arange(samples))
    ends = np.cumsum([genome["bases"] for genome in store.genomes])
    found = np.bincount(np.searchsorted(ends, starts, "right"), minlength=len(ends))
    size = np.bincount(np.searchsorted(ends, windows.flat_start, "right"), minlength=len(ends))
    weights = np.array([1 + i % 4 for i in range(len(ends))])
    share = weights * size.astype(float) ** (1 / temperature)
    share /= share.sum()
    lot = np.sqrt(np.maximum(samples * share * (1 - share), 1e-9))
    return float((np.abs(found - samples * share) / np.where(share > 0, lot, 1)).max())


def find_leaks(folder: Path, out: Path, family: dict[str, int]) -> dict[str, Any]:
    """Held-out stretches whose ancestor trains too, and held-out tiles with k-mers of train."""
    manifest = json.loads((out / "manifest.json").read_text())
    names = [(g["name"], c) for g in manifest["genomes"] for c, _ in g["contigs"]]
    sequences = {}
    for name in family:
        parts = (folder / f"{name}.fa").read_bytes().split(b"\n")
        sequences[name, "c0"], sequences[name, "c1"] = parts[1], parts[3]
    parts = read_splits(out, manifest)
    cut = [[(names[c], sequences[names[c]][a:b]) for c, a, b in part] for part in parts]
    trained = {family[genome] for (genome, _), _ in cut[0]}
    known: set[bytes] = set()
    for _, text in cut[0]:
        known.update(text[i : i + K] for i in range(len(text) - K + 1))
    tiles = leaked = 0
    for _, text in [*cut[1], *cut[2]]:
        for at in range(0, len(text) - TILE + 1, TILE):
            words = [text[i : i + K] for i in range(at, at + TILE - K + 1)]
            tiles += 1
            shared = sum(w in known or w.translate(TURN)[::-1] in known for w in words)
            leaked += shared > 0.1 * len(words)
    return {
        "held_out_genomes_whose_ancestor_trains": sum(
            family[genome] in trained for (genome, _), _ in [*cut[1], *cut[2]]
        ),
        "held_out_tiles": tiles,
        "tiles_with_a_tenth_of_their_24_mers_in_train": leaked,
        "bases": [sum(len(text) for _, text in part) for part in cut],
    }


def measure(root: Path, paths: list[str], n: int, bases: int, kills: int) -> dict[str, Any]:
    """All figures."""
    family = write_genomes(root, read_real(paths), n, bases)
    size = sum((root / f"{name}.fa").stat().st_size for name in family)
    listed, told = root / "list.tsv", root / "told.json"
    if os.waitpid(begin_build(listed, root / "calm", told), 0)[1]:
        sys.exit("the build failed")
    row = json.loads(told.read_text())
    killed = kill_builds(listed, root / "killed", kills, row["seconds"])
    draws = {str(t): round(measure_draws(root / "calm", t), 2) for t in (1.0, 2.0, 100.0)}
    return {
        "genomes": n,
        "bytes": size,
        "seconds": round(row["seconds"], 1),
        "peak_bytes": row["peak_bytes"],
        "passes": round(row["read"] / size, 3),
        "kills": killed,
        "same_bytes": hash_tree(root / "calm") == hash_tree(root / "killed"),
        "deviations_of_draws": draws,
        "leaks": find_leaks(root, root / "calm", family),
    }


def main() -> None:
    """Make, build, kill, check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("real", nargs="+")
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--bases", type=int, default=60_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--results", type=Path)
    asked = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="genodiff-genomes-") as folder:
        found = measure(Path(folder), asked.real, asked.n, asked.bases, asked.kills)
    leaks = found["leaks"]
    good = (
        found["peak_bytes"] < 2e9 and found["passes"] < 1.1 and found["same_bytes"]
        and found["kills"] == asked.kills and max(found["deviations_of_draws"].values()) < 4
        and leaks["held_out_tiles"] > 0
        and not leaks["tiles_with_a_tenth_of_their_24_mers_in_train"]
        and not leaks["held_out_genomes_whose_ancestor_trains"]
    )  # fmt: skip
    print(json.dumps(found | {"good": good}, indent=1))
    if asked.results is not None:
        sys.path[:0] = [str(HERE), str(HERE.parent)]
        from page import write_row

        words = [f"DATA/{Path(path).name}" for path in asked.real]
        told = {"bytes": found["bytes"], "seconds of a build": found["seconds"]}
        told |= {"peak of its memory, MB": round(found["peak_bytes"] / 1e6)}
        told |= {"times that the files are read": found["passes"], "builds killed": found["kills"]}
        told |= {"same bytes after kills": found["same_bytes"]}
        told |= {"draws off their share, in deviations": found["deviations_of_draws"]} | leaks
        write_row(
            asked.results, "many genomes", _ABOUT, asked.n, asked.n if good else 0, told,
            faults=[], seconds=time.monotonic() - began, seed=22,
            command=f"python benchmarks/robustness/many_genomes.py {' '.join(words)}",
        )  # fmt: skip
    sys.exit(not good)


if __name__ == "__main__":
    main()
