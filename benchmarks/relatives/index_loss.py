"""What a sampled index loses: bits of hidden bases with it, with the full table, and exhaustively.

    python benchmarks/relatives/index_loss.py TARGET.fa.gz CONTIG RELATIVE.fa.gz OUT.jsonl

Windows of the target's contig at even distances, masked at several rates, are recalled from the
relative alone. Where nothing is copied a base costs log2 of its share. No network takes part, so
what differs is the index. A line for each index: bits by rate and ms a window.
"""

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from genodiff.alphabet import DNA, encode_bases
from genodiff.io.faidx import Genome
from genodiff.kernels.library import instruction_set
from genodiff.memory.memory import Memory
from genodiff.memory.numbers import MemoryNumbers
from genodiff.memory.search import Effort
from genodiff.memory.tables import build_table, choose_k
from genodiff.memory.text import NONE
from genodiff.runs.folder import find_git_revision
from genodiff.runs.relatives import read_genome_text

RATES = (0.02, 0.15, 0.35, 0.5, 0.65, 0.75, 0.85, 0.92, 0.97)
NUMBERS = MemoryNumbers(
    copies=0.92, start=0.021, end=0.0056, shift=0.0105,
    divergence=(0.0008, 0.080, 0.14, 0.245), share=(0.04, 0.21, 0.50, 0.25),
)  # fmt: skip
"""As fitted to S. paradoxus on chrXVI (relatives.md)."""


def draw(genome: Genome, contig: str, n: int, length: int) -> np.ndarray:
    """(n, length) codes at even distances."""
    starts = np.linspace(0, genome.contigs[contig] - length, n).astype(int)
    return np.stack(
        [encode_bases(DNA.encode(genome.fetch(contig, a, a + length))) for a in starts.tolist()]
    )


def mean_over_rates(bits: list[float]) -> float:
    """The mean over rates, evenly: about what the bound is."""
    return float(np.trapezoid(bits, RATES) / (RATES[-1] - RATES[0]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("contig")
    parser.add_argument("relative", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--windows", type=int, default=60)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--indexes", default="full,sampled,exhaustive")
    parser.add_argument("--scored", type=int, default=Effort().scored)
    given = parser.parse_args()
    text = read_genome_text(given.relative)[0]
    clean = draw(Genome(given.target), given.contig, given.windows, given.length)
    share = np.bincount(clean.ravel(), minlength=5)[:4] / (clean < NONE).sum()
    sampled = Memory.build_sampled(text, numbers=NUMBERS)
    for index in given.indexes.split(","):
        memory = sampled.with_effort(Effort(scored=given.scored))
        if index == "full":
            memory = replace(memory, table=build_table(text, choose_k(text.n_bases)))
        elif index == "exhaustive":
            memory = memory.with_effort(Effort(scored=None))
        bits, cost = [], []
        for rate in RATES:
            hidden = np.random.default_rng(1).random(clean.shape) < rate
            windows = np.where(hidden, NONE, clean).astype(np.uint8)
            begun = time.perf_counter()
            found = memory.recall(windows)
            cost.append((time.perf_counter() - begun) / len(windows) * 1e3)
            p = found.background[..., None] * share + found.copy
            at = hidden & (clean < NONE)
            true = np.take_along_axis(p, np.minimum(clean, 3)[..., None].astype(int), 2)[..., 0]
            each = -np.log2(np.maximum(true, 1e-12))
            bits.append([float(each[i][at[i]].mean()) for i in range(len(clean)) if at[i].any()])
        row = {
            "index": index,
            "commit": find_git_revision(),
            "isa": instruction_set(),
            "windows": given.windows,
            "scored": given.scored,
            "relative": given.relative.name,
            "rates": RATES,
            "bits": [round(float(np.mean(x)), 4) for x in bits],
            "ms": [round(x, 2) for x in cost],
            "mean_bits": round(mean_over_rates([float(np.mean(x)) for x in bits]), 4),
        }
        print(json.dumps(row), flush=True)
        with open(given.out, "a") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
