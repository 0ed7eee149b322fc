"""Scores of every SNV of a genome by `profiles`, as parquet files with a README (`make datasets`).

    our_columns.py GENOME COLUMNS            python datasets.py GENOME COLUMNS OUT [CONTIG ...]

GENOME: yeast, ecoli, chrM or sars2. Writes OUT/CONTIG.parquet: chrom, pos from 1, ref, alt, score
in nats, and genomes, which counts the related genomes that have a base there. OUT/README.md has the
size and sha256 of each file. OUT/zenodo.json is the metadata that Zenodo takes for a DOI. The
classes are fitted on at most 128 windows; no observed variant is read. A contig that is there is
skipped.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import yaml

sys.path.append(str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parent.parent))

from columns_of import LENGTH, cut, weigh_profiles
from our_columns import FIT_CONTIG, GENOMES, has_files
from yeast_setting import SHARED, read_genome

from genodiff.io.file_kinds import sha256_file
from genodiff.memory.profiles import ProfileScores, fit_profiles
from genodiff.memory.relatives_fit import measure_distances
from genodiff.memory.tree import join_neighbours, measure_change
from genodiff.version import __version__

TITLES = {"yeast": "Saccharomyces cerevisiae (sacCer3)", "ecoli": "Escherichia coli K-12 MG1655",
          "chrM": "human mitochondrion (rCRS)", "sars2": "SARS-CoV-2 (NC_045512.2)"}  # fmt: skip
README = """# Scores of all single-nucleotide variants: {title}

Method: `genodiff score --relatives`, by unaligned genomes of related species alone (no
network, no annotation, no observed variants): {names}.

| column | |
|---|---|
| chrom, pos, ref, alt | position from 1, on the reference strand |
| score | nats; positive where the alternative is more tolerated. 0 for no difference |
| genomes | related genomes with a base at the position, of {n}; where 0, the score is the prior's |

| file | bytes | sha256 |
|---|---|---|
{table}

{rows:,} variants in {files} files. Fitted on {windows} windows of {length:,} bases. A score is no
probability of disease; it compares variants of one genome. Accuracy and limits:
docs/explanation/constraint.md and benchmarks/relatives/opponents/RESULTS.md of genodiff.

Made by genodiff {version} (`make datasets`), Apache-2.0; to cite it, see CITATION.cff there. The
related genomes are those of their authors; none of their sequence is in these files.
"""


def open_columns(folder: Path, contig: str) -> tuple[np.ndarray, list[str]]:
    with np.load(folder / f"{contig}.npz") as kept:
        over = kept["over"].astype(np.float32)
        return over / np.maximum(over.sum(-1, keepdims=True), 1), kept["names"].tolist()


def fit(codes: np.ndarray, over: np.ndarray) -> tuple[ProfileScores, int]:
    windows, over = cut(codes, 128, 0), cut(over, 128, 1).astype(np.float64)
    known = (windows < 4).all(1)
    windows, over = windows[known], over[:, known]
    distances, counts = measure_distances(over, windows), np.bincount(windows.ravel(), minlength=4)
    tree, gc = join_neighbours(distances), float((counts[1] + counts[2]) / counts.sum())
    return ProfileScores(tree, gc, fit_profiles(over, windows, distances, tree, gc)), len(windows)


def make_frame(
    contig: str, codes: np.ndarray, over: np.ndarray, scores: ProfileScores
) -> pl.DataFrame:
    at = np.flatnonzero(codes < 4)
    ref, change = codes[at].astype(int), measure_change(over[:, None], codes[None])[0][at]
    logs = weigh_profiles(scores, codes, over, at)
    found = scores.compare(logs, over[:, at].astype(np.float64), ref, change)
    alt = (ref[:, None] + np.arange(1, 4)) % 4
    alt.sort(1)
    letters = np.array(list("ACGT"))
    return pl.DataFrame({
        "chrom": pl.Series([contig] * (3 * len(at)), dtype=pl.Categorical),
        "pos": np.repeat(at + 1, 3).astype(np.int32),
        "ref": letters[np.repeat(ref, 3)],
        "alt": letters[alt.ravel()],
        "score": np.take_along_axis(found, alt, 1).ravel().astype(np.float32),
        "genomes": np.repeat((over[:, at].sum(-1) > 0.5).sum(0), 3).astype(np.int16),
    })  # fmt: skip


def main() -> None:
    if not has_files(sys.argv[1]):
        return
    genome, columns, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    out.mkdir(parents=True, exist_ok=True)
    if genome == "chrM":
        file = SHARED / "genomes" / "hg38_regions.fa.gz"
        contigs = {"chrM": read_genome(file)["chrM:1-16569"]}
    else:
        contigs = read_genome(SHARED / "genomes" / GENOMES[genome][0])
        contigs = {name: codes for name, codes in contigs.items() if name != "chrM"}
    first = FIT_CONTIG if genome == "yeast" else next(iter(contigs))
    over, names = open_columns(columns, first)
    scores, windows = fit(contigs[first], over)
    rows, begun = 0, time.process_time()
    for contig in sys.argv[4:] or contigs:
        path = out / f"{contig}.parquet"
        if not path.exists():
            frame = make_frame(contig, contigs[contig], open_columns(columns, contig)[0], scores)
            frame.write_parquet(path.with_suffix(".part"), compression="zstd")
            path.with_suffix(".part").rename(path)
        rows += pl.scan_parquet(path).select(pl.len()).collect().item()
        print(contig, rows, "rows", round(time.process_time() - begun), "s of CPU", flush=True)
    named = ", ".join(names) if len(names) < 10 else f"{len(names)} genomes"
    files = sorted(out.glob("*.parquet"))
    table = [f"| {one.name} | {one.stat().st_size:,} | {sha256_file(one)} |" for one in files]
    title = README.splitlines()[0].removeprefix("# ").format(title=TITLES[genome])
    text = README.format(
        title=TITLES[genome], names=named, n=len(names), rows=rows, files=len(files),
        table="\n".join(table), windows=windows, length=LENGTH, version=__version__,
    )  # fmt: skip
    (out / "README.md").write_text(text)
    cited = yaml.safe_load((Path(__file__).resolve().parents[3] / "CITATION.cff").read_text())
    metadata = {
        "upload_type": "dataset", "title": title, "description": text, "version": __version__,
        "creators": [{"name": one["name"]} for one in cited["authors"]],
        "access_right": "open", "license": cited["license"], "keywords": cited["keywords"],
    }  # fmt: skip
    (out / "zenodo.json").write_text(json.dumps({"metadata": metadata}, indent=1) + "\n")


if __name__ == "__main__":
    main()
