"""Where the chosen networks err on GUE: missed positives and false ones, on validation and on test.

    python benchmarks/finetune/errors.py --data SHARED/data [--out FOLDER]
    [--preset caduceus-ph-85k]

Nothing is fitted: the predictions are those of OUT/gue, where run.py wrote them. ERRORS.md is
written beside this script or, with --here FOLDER, there.
"""

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_curve

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from run import SUITES  # noqa: E402

from genodiff.data.kmers import shared_kmer_fractions  # noqa: E402
from genodiff.finetuning.scored_unit import read_predictions  # noqa: E402
from genodiff.finetuning.unit import TEST, UNITS, read_results  # noqa: E402
from genodiff.tasks.task import load_task  # noqa: E402

GUE = SUITES["gue"]
THRESHOLD = 0.5
VALIDATION = "validation.safetensors"
"""Predictions of a trial for the validation part: sweeps of `finetune --budget` kept them."""
Mask = NDArray[np.bool_]


class Errors(NamedTuple):
    """Shares of the examples of a class that are put into the other one, at a threshold of 0.5."""

    missed: float
    false: float


class Part(NamedTuple):
    """Predictions (n,) of the positive class, and which examples are positive (n,)."""

    predicted: NDArray[np.float64]
    positive: Mask

    @property
    def called(self) -> Mask:
        """(n,) which examples are put into the positive class."""
        return self.predicted > THRESHOLD

    def count_errors(self) -> Errors:
        called = self.called
        return Errors(float(1 - called[self.positive].mean()), float(called[~self.positive].mean()))

    def find_best_mcc(self) -> float:
        """The highest MCC of all thresholds: of this part itself, so a bound and no result."""
        false, hit, _ = roc_curve(self.positive, self.predicted, drop_intermediate=False)
        n, n_false = self.positive.sum(), (~self.positive).sum()
        tp, fp = n * hit, n_false * false
        called = tp + fp
        scale = np.sqrt(called * (n + n_false - called) * n * n_false)
        values = (tp * (n_false - fp) - fp * (n - tp)) / np.where(scale > 0, scale, 1)
        return float(values.max())


def read_part(folder: Path, file: str) -> Part:
    """The predictions of a fit for a part of a task of two classes."""
    predicted, truth, _ = read_predictions(folder, file)
    return Part(predicted[:, 1] if predicted.ndim == 2 else predicted, truth == 1)


def find_familiar(data: Path, task: str) -> Mask:
    """(n,) which test sequences share some 24-mer with train, on either strand."""
    found = load_task("gue", task, source=data / GUE.data, split="official")
    return shared_kmer_fractions(found.test.sequences, found.train.sequences) > 0


def describe_task(sweep: Path, rows: list[dict[str, Any]], familiar: Mask) -> str:
    """A row of the table; `rows` are a task's, one for each seed."""
    folders = [sweep / UNITS / row["key"] for row in rows]
    tests = [read_part(folder, TEST) for folder in folders]
    found = [part.count_errors() for part in tests]
    first = next(i for i, row in enumerate(rows) if row["seed"] == 1)
    known = (folders[first] / VALIDATION).exists()
    valid = read_part(folders[first], VALIDATION).count_errors() if known else None
    cells = [
        f"{np.mean([row['valid'] for row in rows]):.3f}",
        f"{np.mean([row['value'] for row in rows]):.3f}",
        _share(None if valid is None else valid.missed),
        _share(np.mean([one.missed for one in found])),
        _share(None if valid is None else valid.false),
        _share(np.mean([one.false for one in found])),
    ]
    for those in (familiar, ~familiar):
        asked = those & ~tests[0].positive
        false = [part.called[asked].mean() for part in tests] if asked.any() else []
        cells.append(f"{_share(np.mean(false))} of {asked.sum():,}" if false else "none there")
    cells.append(f"{np.mean([part.find_best_mcc() for part in tests]):.3f}")
    return f"| {rows[0]['task']} | {' | '.join(cells)} |"


def _share(value: float | np.floating[Any] | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with nt_tasks/GUE")
    parser.add_argument("--preset", default="caduceus-ph-85k", help="the network from scratch")
    parser.add_argument("--out", type=Path, default=Path("runs/finetune"), help="that of run.py")
    parser.add_argument("--here", type=Path, default=HERE, help="where the table goes")
    asked = parser.parse_args()
    text = [
        "# Errors: where the chosen networks err",
        "",
        f"`{asked.preset}` from random weights, as in gue.md, at a threshold of 0.5. MCC and the "
        "errors on test are means over five seeds. The errors on validation are those of seed 1 "
        "(not kept for the core promoters). Familiar negatives of test share at least one 24-mer "
        "with train, on either strand. The last column has the highest MCC that any threshold "
        "gives on the test part. It is chosen on the test part: a bound, and no result.",
        "",
        "| task | MCC, validation | MCC, test | missed, validation | missed, test | "
        "false, validation | false, test | false, familiar negatives | false, other negatives | "
        "MCC, best threshold |",
        "|---" * 10 + "|",
    ]
    sweep = asked.out / "gue"
    chosen = [r for r in read_results(sweep) if r["model"] == f"scratch:{asked.preset}"]
    if missing := [r for r in chosen if not (sweep / UNITS / r["key"] / TEST).exists()]:
        parser.error(f"{sweep} has no predictions of {missing[0]['task']}: see kept_sweep.py")
    for task in GUE.tasks:
        if rows := [row for row in chosen if row["task"] == task]:
            text.append(describe_task(sweep, rows, find_familiar(asked.data, task)))
    text += ["", "Command: `python benchmarks/finetune/errors.py --data SHARED/data`.", ""]
    asked.here.mkdir(parents=True, exist_ok=True)
    (asked.here / "ERRORS.md").write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
