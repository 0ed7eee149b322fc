"""`genodiff constraint` beside PHAST on the same columns.

    python benchmarks/relatives/constraint_phast.py FOLDER WORK

FOLDER is an output of `genodiff constraint --maf --format parquet`, of one contig. The columns of
its alignment.maf go to phyloFit (HKY85, the tree's topology) and phyloP (LRT CONACC, GERP), the
fitted tree being scaled to the length of ours, so that both have the same rate 1. What is printed
is the correlation of `phylop` and `rs` with phyloP's own. GERP's rates are unbounded in phyloP, so
`rs` is compared twice: with the cap of 3 that GERP++ has for both, and without.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
from Bio import AlignIO
from scipy.stats import spearmanr

CAP = 3.0


def main(folder: Path, work: Path) -> None:
    work.mkdir(parents=True, exist_ok=True)
    told = json.loads((folder / "constraint.json").read_text())
    names = [one["name"] for one in told["relatives"]["genomes"]]
    blocks = list(AlignIO.parse(folder / "alignment.maf", "maf"))
    target = blocks[0][0].id
    rows: dict[str, list[str]] = {target: [], **{name: [] for name in names}}
    places = []
    for block in blocks:
        start, width = block[0].annotations["start"], block.get_alignment_length()
        places.append(np.arange(start, start + width))
        there = {row.id.rpartition(".")[0]: str(row.seq) for row in block}
        for name, parts in rows.items():
            parts.append(there.get(name, "-" * width))
    tree = told["tree"].replace(target.split(".")[0] + ":", "target:")
    (work / "tree.nwk").write_text(tree)
    with open(work / "aligned.fa", "w") as file:
        for name, parts in rows.items():
            letters = "".join(parts)
            file.write(f">{'target' if name == target else name}\n{letters.replace('-', 'N')}\n")

    def phast(*words: str) -> str:
        return subprocess.run(words, check=True, capture_output=True, text=True, cwd=work).stdout

    phast("phyloFit", "--tree", "tree.nwk", "--subst-mod", "HKY85", "-o", "neutral", "aligned.fa")
    scale_tree(work / "neutral.mod", measure(tree))
    place = np.concatenate(places)
    frame = pl.read_parquet(folder / "tracks.parquet")
    ours = {name: np.full(len(place), np.nan) for name in ("rs", "phylop", "length")}
    at = np.searchsorted(place, frame["pos"].to_numpy() - 1)
    for name, values in ours.items():
        values[at] = frame[name].to_numpy()
    model = ("--base-by-base", "neutral.mod", "aligned.fa")
    gerp = read(phast("phyloP", "--method", "GERP", *model), len(place))
    lrt = read(phast("phyloP", "--method", "LRT", "--mode", "CONACC", *model), len(place))
    known = ~np.isnan(gerp[:, 0]) & ~np.isnan(lrt[:, 0]) & ~np.isnan(ours["rs"])
    capped = gerp[:, 0] - np.minimum(gerp[:, 1], CAP * gerp[:, 0])
    signed = np.sign(lrt[:, 2]) * -np.log10(np.maximum(np.abs(lrt[:, 2]), 1e-20))
    print(f"{int(known.sum()):,} columns, tree {tree.strip()}")
    for name, mine, theirs in (
        ("rs, both capped at 3", ours["rs"], capped),
        ("rs, phyloP without a cap", ours["rs"], gerp[:, 2]),
        ("phylop", ours["phylop"], signed),
    ):
        pearson = np.corrcoef(mine[known], theirs[known])[0, 1]
        rank = spearmanr(mine[known], theirs[known])[0]
        print(f"{name:26} Pearson {pearson:.4f}  Spearman {rank:.4f}")


def measure(tree: str) -> float:
    """The sum of the lengths of a Newick tree."""
    return sum(float(x) for x in re.findall(r":([0-9.eE+-]+)", tree))


def scale_tree(model: Path, length: float) -> None:
    """Scale the tree of a PHAST model to `length`, so that both have the same rate 1."""
    text = model.read_text()
    factor = length / measure(text.split("TREE:")[1])

    def times(found: re.Match[str]) -> str:
        return f":{float(found[1]) * factor:.6f}"

    head, tree = text.split("TREE:")
    model.write_text(f"{head}TREE:{re.sub(r':([0-9.eE+-]+)', times, tree)}")


def read(text: str, n: int) -> np.ndarray:
    """(n, 3): what `--base-by-base` prints; NaN where it skips a column."""
    out, at = np.full((n, 3), np.nan), 0
    for line in text.splitlines():
        if line.startswith("fixedStep"):
            at = int(line.split("start=")[1].split()[0]) - 1
        elif not line.startswith("#"):
            out[at] = [float(x) for x in line.split()[:3]]
            at += 1
    return out


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
