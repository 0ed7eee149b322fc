"""A megabase of human chr22 and far relatives: which of BLASTZ's bases are laid, and which others.

    GENODIFF_SHARED=... python benchmarks/relatives/far.py OUT.json [mouse rat chicken] [--step 512]

The middle 512 bases of windows of 1,024 are judged. `laid`: the share of BLASTZ's bases over which
a base lies with a chance above one half; `right`: of these, how many are BLASTZ's own; `false`:
laid where BLASTZ has none, as a share of all bases; `reversed`: all that is laid where the human
sequence is read backwards (not complemented), as a share of all bases: little is homologous there.
"""

import argparse
import gzip
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA, encode_bases
from genodiff.io.atomic import write_json
from genodiff.io.faidx import Genome
from genodiff.memory.alignment import align_windows
from genodiff.memory.memory import Memory
from genodiff.memory.relatives import RelativeGenome
from genodiff.memory.relatives_fit import fit_genome
from genodiff.memory.text import join_stretches
from genodiff.runs.related_genome import FIT_LENGTH, FIT_WINDOWS, draw_windows

DATA = Path(os.environ["GENODIFF_SHARED"]) / "data/mammal"
HUMAN, LENGTH, CORE = DATA / "human_chr22_1Mb.fa.gz", 1024, 512
ASSEMBLY = {"mouse": "mm5", "rat": "rn3", "chicken": "galGal2", "fugu": "fr1"}


def read_truth(name: str, length: int) -> NDArray[np.int8]:
    """The base (0 to 3) that BLASTZ lays over each of the human bases; 4 for none or N."""
    found, block = np.full(length, 4, np.int8), {}
    with gzip.open(DATA / "blastz_rows.maf.gz", "rt") as lines:
        for line in (*lines, "a"):
            if line.startswith("a"):
                _lay(block, ASSEMBLY[name], found)
                block = {}
            elif line.startswith("s"):
                _, source, start, _, _, _, row = line.split()
                block[source.partition(".")[0]] = int(start), row.upper()
    return found


def _lay(block: dict[str, tuple[int, str]], assembly: str, found: NDArray[np.int8]) -> None:
    if "hg17" in block and assembly in block:
        at, human = block["hg17"]
        for own, other in zip(human, block[assembly][1], strict=True):
            if own != "-":
                if other in "ACGT":
                    found[at] = "ACGT".index(other)
                at += 1


def read_codes(path: Path) -> list[tuple[str, int, Any]]:
    with Genome(path) as genome:
        return [
            (name, 0, encode_bases(DNA.encode(genome.fetch(name, 0, n))))
            for name, n in genome.contigs.items()
        ]


def lay(genome: RelativeGenome, memory: Memory, codes: Any, step: int) -> tuple[Any, Any, float]:
    """(L, 4) chances of the base over each, which bases were judged, and ms of CPU a window."""
    over, judged = np.zeros((len(codes), 4)), np.zeros(len(codes), bool)
    starts = np.arange(1024, len(codes) - LENGTH + 1, step)
    begun = time.process_time()
    for i in range(0, len(starts), 32):
        some = starts[i : i + 32]
        seen, found = genome.search(codes[some[:, None] + np.arange(LENGTH)])
        aligned, _ = align_windows(memory.text, seen, found, genome.numbers)
        for start, one in zip(some, aligned, strict=True):
            middle = slice(start + (LENGTH - CORE) // 2, start + (LENGTH + CORE) // 2)
            over[middle] = one.sum(1)[(LENGTH - CORE) // 2 : (LENGTH + CORE) // 2]
            judged[middle] = True
    return over, judged, 1000 * (time.process_time() - begun) / len(starts)


def measure(name: str, step: int) -> dict[str, Any]:
    (_, _, codes) = read_codes(HUMAN)[0]
    memory = Memory.build_sampled(join_stretches(read_codes(DATA / f"{name}_pieces.fa.gz")))
    with Genome(HUMAN) as human:
        windows = draw_windows(human, FIT_WINDOWS, FIT_LENGTH)
    begun = time.process_time()
    genome = fit_genome(memory, windows)
    fitted, truth = time.process_time() - begun, read_truth(name, len(codes))
    told: dict[str, Any] = {"fit_seconds": round(fitted, 1), "far": genome.numbers.far}
    over, judged, ms = lay(genome, memory, codes, step)
    judged &= codes < 4
    lies, aligned = over.sum(1) > 0.5, (truth < 4) & judged
    told |= {
        "windows_ms": round(ms, 2), "judged": int(judged.sum()), "aligned": int(aligned.sum()),
        "laid": round(lies[aligned].mean(), 4),
        "right": round((over.argmax(1) == truth)[aligned & lies].mean(), 4),
        "false": round((lies & judged & ~aligned).sum() / judged.sum(), 4),
    }  # fmt: skip
    back, known, _ = lay(genome, memory, np.ascontiguousarray(codes[::-1]), 8 * step)
    known &= codes[::-1] < 4
    told["reversed"] = round((back.sum(1) > 0.5)[known].mean(), 4)
    return told


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", default=["mouse", "rat", "chicken"])
    parser.add_argument("--step", type=int, default=CORE)
    asked = parser.parse_args()
    found = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    for name in asked.names:
        found[name] = measure(name, asked.step)
        write_json(asked.out, found)
        print(name, found[name], flush=True)


if __name__ == "__main__":
    main()
