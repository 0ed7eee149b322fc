"""How well judges of yeast promoters rank designs that were measured: a check that nobody can hack.

    python benchmarks/design/judges.py --data FOLDER [--out benchmarks/design]

FOLDER holds the measured promoters of Vaishnav et al. 2022 (`promoters/yeast`). The 983 promoters
that a genetic algorithm designed, high or low, are the test. Judges are ridge regressions on words
of 1 to 5 bases of the 80 bp core, each fitted on a third of the other promoters. Thirds are whole
families (cores that share 24 bases, on a strand), and a core that shares 24 bases with a design is
left out. Beside them stands the model that guided the designs. High and low are also ranked by
themselves: a judge that only tells high from low has seen what everybody knows.

Intervals are percentile bootstraps over designs. One split, one seed. Writes JUDGES.md and
judges.jsonl. How two fine-tuned networks rank them is in RESULTS.md, by run.py.
"""

import argparse
import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import spearmanr
from sklearn.linear_model import Ridge

from genodiff.alphabet import reverse_complement
from genodiff.finetuning.count_regression import kmer_features
from genodiff.runs.folder import find_git_revision

SETS = ("Random", "Native", "Drift", "SSWM")
CORE = slice(-93, -13)  # of 110 bases in a fixed frame; Random has N before them
SHARED = 24
WORDS = (1, 2, 3, 4, 5)
PENALTIES = (0.1, 1.0, 10.0)
Floats = NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    folder = asked.data / "promoters" / "yeast"
    designs = [row for row in read(folder / "GA_designed_complex.csv.gz") if row["meanEL"]]
    cores = [row["seq110"][CORE] for row in designs]
    measured = np.array([float(row["meanEL"]) for row in designs])
    is_high = np.array([row["designedDir"] == "high" for row in designs])
    known: dict[str, list[float]] = {}
    for name in SETS:
        for row in read(folder / f"{name}_complex.csv.gz"):
            known.setdefault(row["sequence"][CORE], []).append(float(row["Measured Expression"]))
    taken = {word for core in cores for word in list_words(core)}
    texts = [text for text in known if not taken & set(list_words(text))]
    values = np.array([np.mean(known[text]) for text in texts])
    third = deal(texts, asked.seed)
    print(f"{len(known):,} cores, {len(texts):,} of them unlike the designs, {len(cores)} designs")
    judges: dict[str, Floats] = {}
    for part in range(3):
        rows = np.flatnonzero(third == part)
        judges[f"ridge {'ABC'[part]}"] = fit_ridge(texts, values, rows, cores)
    judges["the model that guided"] = np.array([float(row["edvPred"]) for row in designs])
    judges["GC"] = np.array([sum(base in "GC" for base in core) / 80 for core in cores])
    rows_of_table = []
    for name, scores in judges.items():
        row: dict[str, Any] = {"judge": name, "commit": find_git_revision(), "seed": asked.seed}
        row["fitted"] = int((third == "ABC".find(name[-1])).sum()) if "ridge" in name else None
        for group, chosen in (("all", is_high | True), ("high", is_high), ("low", ~is_high)):
            row[group] = rank(scores[chosen], measured[chosen], asked.seed)
        rows_of_table.append(row)
        print(name, {group: row[group] for group in ("all", "high", "low")})
    write(asked.out, rows_of_table, len(texts), int(is_high.sum()), int((~is_high).sum()))


def read(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", newline="") as file:
        return list(csv.DictReader(file))


def list_words(core: str) -> list[str]:
    """All stretches of 24 bases, on both strands."""
    strands = (core, str(reverse_complement(core)))
    return [text[i : i + SHARED] for text in strands for i in range(len(text) - SHARED + 1)]


def deal(texts: list[str], seed: int) -> NDArray[np.int64]:
    """The third of each core; families stay together, the largest are dealt first."""
    first: dict[str, int] = {}
    pairs = [
        (i, first.setdefault(word, i)) for i, one in enumerate(texts) for word in list_words(one)
    ]
    rows, columns = np.array(pairs).T
    links = coo_array((np.ones(len(rows)), (rows, columns)), shape=(len(texts), len(texts)))
    _, family = connected_components(links, directed=False)
    sizes = np.bincount(family)
    order = np.random.default_rng(seed).permutation(len(sizes))
    filled, third = np.zeros(3), np.zeros(len(sizes), np.int64)
    for one in order[np.argsort(-sizes[order], kind="stable")].tolist():
        third[one] = int(filled.argmin())
        filled[third[one]] += sizes[one]
    found: NDArray[np.int64] = third[family]
    return found


def fit_ridge(
    texts: list[str], values: Floats, rows: NDArray[np.int64], wanted: list[str]
) -> Floats:
    """Scores of `wanted`; the penalty is chosen on a tenth of the rows."""
    features = kmer_features([one.encode() for one in texts], both_strands=False, ks=WORDS)
    held, fitted = rows[::10], np.setdiff1d(rows, rows[::10])

    def judge(penalty: float) -> float:
        model = Ridge(penalty).fit(features[fitted], values[fitted])
        return float(spearmanr(model.predict(features[held]), values[held]).statistic)

    best = max(PENALTIES, key=judge)
    model = Ridge(best).fit(features[rows], values[rows])
    given = kmer_features([one.encode() for one in wanted], both_strands=False, ks=WORDS)
    return np.asarray(model.predict(given), float)


def rank(scores: Floats, measured: Floats, seed: int) -> list[float]:
    """Spearman's correlation and its 95 % interval."""
    draws = np.random.default_rng(seed)
    n = len(scores)
    again = []
    for _ in range(1000):
        some = draws.integers(n, size=n)
        again.append(spearmanr(scores[some], measured[some]).statistic)
    ends = np.quantile(again, [0.025, 0.975])
    return [round(float(x), 3) for x in (spearmanr(scores, measured).statistic, *ends)]


def write(out: Path, rows: list[dict[str, Any]], fitted: int, high: int, low: int) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "judges.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = [
        "# Judges of yeast promoters, on designs that were measured",
        "",
        "Spearman's correlation with the measured expression of promoters that a genetic algorithm "
        f"designed ({high} high, {low} low; Vaishnav et al. 2022), with 95 % percentile bootstrap "
        f"intervals over designs. Ridges: words of 1 to 5 bases, fitted on thirds of {fitted:,} "
        "other cores, whole families. Made by `python benchmarks/design/judges.py --data FOLDER`; "
        f"commit {rows[0]['commit']}, seed {rows[0]['seed']}. One split, one seed.",
        "",
        "| judge | all | high | low |",
        "|---|---|---|---|",
    ]
    for row in rows:
        cells = [
            f"{row[g][0]:.3f} [{row[g][1]:.3f}, {row[g][2]:.3f}]" for g in ("all", "high", "low")
        ]
        lines.append(f"| {row['judge']} | {' | '.join(cells)} |")
    (out / "JUDGES.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
