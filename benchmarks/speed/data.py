"""What it costs to fetch training windows, in nanoseconds of one core per base: genodiff's batches
beside pyfaidx.

    python benchmarks/speed/data.py --json
    a random genome of 4 million bases, batches of 64 windows

`batch` is all that training does for a micro-batch: which windows, their bases, what may be masked,
counts and uniforms. `gather` is the bases alone. The peers fetch the same windows one after the
other: pyfaidx with a lookup table, and with a dictionary per character.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import pyfaidx
import timing
import torch

from genodiff.alphabet import DNA
from genodiff.runs.feed import open_feed, open_train_batches
from genodiff.runs.resolve import resolve_config

_BATCH = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--bases", type=int, default=4_000_000)
    parser.add_argument("--lengths", type=int, nargs="*", default=[1024, 8192, 32768])
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        fasta = genome(Path(folder) / "genome.fa", a.bases, a.seed)
        for length in a.lengths:
            variants = fetches(fasta, length, a.seed)
            times = timing.interleaved(variants, a.rounds)
            per_base = 1e9 / (_BATCH * length)
            found[str(length)] = {name: round(median(t) * per_base, 3) for name, t in times.items()}
    first = found[str(a.lengths[0])]
    result = {
        "benchmark": "data",
        "shape": {"batch": _BATCH, "bases": a.bases},
        "ns_per_base": found,
        "ratios": {
            name: round(value / first["gather"], 1)
            for name, value in first.items()
            if name != "gather"
        },
        "rounds": a.rounds,
        "seed": a.seed,
    }
    timing.show(result | timing.provenance(), a.json)


def genome(path: Path, bases: int, seed: int) -> Path:
    """A FASTA of four random contigs in lines of 60."""
    letters = np.frombuffer(b"ACGT", np.uint8)[
        np.random.default_rng(seed).integers(0, 4, bases)
    ].reshape(4, -1)
    with path.open("w") as file:
        for i, contig in enumerate(letters):
            text = contig.tobytes().decode()
            file.write(
                f">chr{i + 1}\n"
                + "\n".join(text[j : j + 60] for j in range(0, len(text), 60))
                + "\n"
            )
    return path


def fetches(fasta: Path, length: int, seed: int) -> dict[str, Callable[[], object]]:
    """Each way to fetch a batch; the batches differ from call to call."""
    given = {
        "recipe": "own",
        "fasta": str(fasta),
        "preset": "caduceus-ph-470k",
        "seq_len": length,
        "batch_size": _BATCH,
        "seed": seed,
    }
    config = resolve_config({}, over=given)
    feed = open_feed(config, offline=True)
    batches, windows, count = open_train_batches(feed, config), feed.train, iter(range(10**9))
    rng = np.random.default_rng(seed)
    reader = pyfaidx.Fasta(str(fasta), as_raw=True, sequence_always_upper=True)
    names = list(reader.keys())
    table = np.zeros(256, np.uint8)
    ids = {letter: i for i, letter in enumerate("ACGT")}
    table[[ord(x) for x in ids]] = list(ids.values())

    def places() -> list[tuple[str, int]]:
        starts = rng.integers(0, len(reader[0]) - length, _BATCH)
        return [(names[c], int(s)) for c, s in zip(rng.integers(0, 4, _BATCH), starts, strict=True)]

    def gather() -> object:
        index = rng.integers(0, len(windows), _BATCH)
        return windows.gather(windows.flat_start[index], windows.length[index], DNA.pad_id)

    def by_table() -> object:
        return np.stack(
            [
                table[np.frombuffer(reader[c][s : s + length].encode(), np.uint8)]
                for c, s in places()
            ]
        )

    def by_character() -> object:
        return np.array(
            [[ids[x] for x in reader[c][s : s + length]] for c, s in places()], np.uint8
        )

    return {
        "batch": lambda: batches.batch(next(count)),
        "gather": gather,
        "pyfaidx": by_table,
        "pyfaidx_dict": by_character,
    }


if __name__ == "__main__":
    main()
