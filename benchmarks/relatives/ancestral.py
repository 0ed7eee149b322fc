"""Ancestral bases of yeast's natural SNPs, beside genomes that were left out.

    python benchmarks/relatives/ancestral.py FOLDER chrV
    python benchmarks/relatives/ancestral.py FOLDER chrVIII chrXI chrXIII

FOLDER is an output of `genodiff constraint --maf` of yeast with S. paradoxus CBS432 and UFRJ50816,
S. arboricola and S. eubayanus. SNPs are those of yeast_natural_snvs.tsv.gz. What is measured:

- where UFRJ50816 and S. arboricola, both left out, have the same of REF and ALT: whether that is
  the base that the other two genomes make ancestral. Two lineages rarely change alike.
- UFRJ50816 alone left out: it changes itself, and shares changes with CBS432. So what it has is not
  the ancestral base; but the tree says how likely it is to have it. Is that probability calibrated?
"""

import gzip
import json
import os
import sys
from pathlib import Path

import numpy as np
from Bio import AlignIO

from genodiff.memory.column_rates import list_unique
from genodiff.memory.columns import ColumnNumbers, _run_states, list_states, read_columns
from genodiff.memory.text import NONE
from genodiff.memory.tree import share_bases

TRUTH = Path(os.environ["GENODIFF_SHARED"]) / "data/relatives/truth/yeast_natural_snvs.tsv.gz"
LENGTH, AROUND = 3072, 510


def read_sites(contigs: list[str]) -> dict[str, np.ndarray]:
    """Position, REF and ALT of the natural SNPs of each contig."""
    found: dict[str, list[tuple[int, int, int]]] = {name: [] for name in contigs}
    with gzip.open(TRUTH, "rt") as file:
        for row in (line.split("\t") for line in file):
            if row[0] in found and row[4] == "1":
                found[row[0]].append((int(row[1]) - 1, *map("ACGT".index, row[2:4])))
    return {name: np.array(rows) for name, rows in found.items()}


def read_maf(folder: Path, names: list[str], contigs: list[str]) -> dict[str, np.ndarray]:
    """(L, 1 + G): the columns of contigs."""
    out: dict[str, np.ndarray] = {}
    code = np.full(256, NONE, np.uint8)
    code[list(b"ACGTacgt")] = [*range(4)] * 2
    for block in AlignIO.parse(folder / "alignment.maf", "maf"):
        contig = block[0].id.split(".", 1)[1]
        if contig not in contigs:
            continue
        start, length = (block[0].annotations[key] for key in ("start", "srcSize"))
        table = out.setdefault(contig, np.full((length, 1 + len(names)), NONE, np.uint8))
        for i, row in enumerate(block):
            column = 0 if i == 0 else 1 + names.index(row.id.rpartition(".")[0])
            letters = code[np.frombuffer(bytes(row.seq), np.uint8)]
            table[start : start + len(letters), column] = letters
    return out


def spell(columns: np.ndarray, gc: float) -> np.ndarray:
    """(G, M, 4): what genomes have over positions, for `read_columns`."""
    return np.eye(5)[columns[:, 1:].T][..., :4]


def weigh(columns: np.ndarray, numbers: ColumnNumbers) -> np.ndarray:
    """(M, J, 4): the weight of each base of the target, at each rate."""
    unique, inverse = list_unique(columns)
    return read_columns(spell(unique, numbers.gc), numbers)[inverse]


def tell_rates(columns: np.ndarray, numbers: ColumnNumbers) -> np.ndarray:
    """(L, J): the chance of each rate, as told by the columns around."""
    states = list_states(numbers)
    unique, inverse = list_unique(columns)
    weights = read_columns(spell(unique, numbers.gc), numbers)
    bases = np.eye(5)[unique[:, 0]][:, :4] + (unique[:, :1] == NONE) * share_bases(numbers.gc)
    seen = np.einsum("ujc,uc->uj", weights, bases)[inverse]
    out = np.zeros((len(columns), len(numbers.rate)))
    step = LENGTH - 2 * AROUND
    for start in range(0, max(len(columns) - 2 * AROUND, 1), step):
        end = min(start + LENGTH, len(columns))
        told = _run_states(seen[None, start:end], states).told[0]
        low = 0 if start == 0 else AROUND
        place = np.arange(end - start)[low:] % 3
        mixed = np.einsum("lk,lkj->lj", told[low:], states.weights[place])
        out[start + low : end] = mixed
    return out


def measure_error(said: np.ndarray, right: np.ndarray, bins: int = 10) -> float:
    """The expected calibration error."""
    at = np.minimum((said * bins).astype(int), bins - 1)
    return sum(abs((said - right)[at == b].sum()) for b in range(bins)) / len(said)


def main(folder: Path, contigs: list[str]) -> None:
    told = json.loads((folder / "constraint.json").read_text())
    names = [one["name"] for one in told["relatives"]["genomes"]]
    numbers, sites = ColumnNumbers(**told["columns"]), read_sites(contigs)
    tables = read_maf(folder, names, contigs)
    columns = np.concatenate([tables[name][sites[name][:, 0]] for name in contigs])
    rates = np.concatenate(
        [tell_rates(tables[name], numbers)[sites[name][:, 0]] for name in contigs]
    )
    _, ref, alt = np.concatenate([sites[name] for name in contigs]).T
    at, judge, other = np.arange(len(ref)), *(
        1 + next(i for i, name in enumerate(names) if key in name) for key in ("UFRJ", "arb")
    )  # fmt: skip

    def decide(left_out: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Whether ALT is ancestral, the probability of that or of REF, and where it is told."""
        some = columns.copy()
        some[:, left_out] = NONE
        likely = np.einsum("mj,mjb->mb", rates, weigh(some, numbers))
        odds = np.log(likely[at, alt]) - np.log(likely[at, ref])
        return odds > 0, 1 / (1 + np.exp(-np.abs(odds))), (some[:, 1:] < NONE).any(1)

    has = columns[:, judge]
    decided = (has == ref) | (has == alt)
    found, said, there = decide([judge, other])
    both = decided & there & (has == columns[:, other])
    right = (found == (has == alt))[both]
    print(f"{len(ref):,} SNPs; both genomes left out agree on REF or ALT at {both.sum():,}")
    print(f"  right {right.mean():.4f}, said {said[both].mean():.4f}")
    sure = said[both] > 0.9
    print(f"  said above .9: {sure.sum():,}, right {right[sure].mean():.4f}")
    found, said, there = decide([judge])
    joint = np.zeros((len(ref), 2))
    for k, base in enumerate((ref, alt)):
        some = columns.copy()
        some[:, judge] = base
        likely = np.einsum("mj,mjb->mb", rates, weigh(some, numbers))
        joint[:, k] = (likely[at, ref] + likely[at, alt]) * share_bases(numbers.gc)[base]
    forecast = np.where(found, joint[:, 1], joint[:, 0]) / joint.sum(1)
    use = decided & there
    right, forecast = (found == (has == alt))[use], forecast[use]
    print(f"UFRJ50816 alone left out, it has REF or ALT at {use.sum():,}")
    print(f"  it has the base that is called ancestral at {right.mean():.4f}")
    error = measure_error(forecast, right)
    print(f"  forecast of that {forecast.mean():.4f}, calibration error {error:.4f}")
    print(f"  probability of the ancestral base, mean: {said[use].mean():.4f}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
