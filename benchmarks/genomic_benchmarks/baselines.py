"""Audits and baselines on the benchmark data that are here: five seeds, resumable, rows in
results.jsonl.

    python benchmarks/genomic_benchmarks/baselines.py --data SHARED/data [--out FOLDER] [--seeds 5]
    [--tasks NAME ...] [--audit-only]

--data is a folder with genomic_benchmarks/ and nt_tasks/GUE/. A unit that has its row is not run
again; the key of a row is that of `genodiff finetune`, so that a sweep into the same folder takes
these rows as done. `--report` writes AUDIT.md from what is there.
"""

import argparse
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from genodiff import __version__
from genodiff.finetuning.baselines import fit_baseline, list_allowed_baselines
from genodiff.finetuning.model_spec import ModelSpec
from genodiff.finetuning.model_words import TUNED_BASELINES
from genodiff.finetuning.protocol import FitSettings
from genodiff.finetuning.results import add_rows, hash_data, null_nonfinite, read_results
from genodiff.finetuning.unit import Unit
from genodiff.io import atomic
from genodiff.io.identity import stamp_time
from genodiff.runs.folder import find_git_revision
from genodiff.tasks.audit import audit, audit_lines
from genodiff.tasks.metrics import measure, measure_spread
from genodiff.tasks.suite import list_task_names
from genodiff.tasks.task import TaskData, load_task, seed_split

HERE = Path(__file__).parent
AUDITS = "audits.jsonl"
COMMIT = find_git_revision()  # of the code as it was loaded
TASKS = [
    ("gue", "mouse/3", "official"), ("gue", "mouse/2", "official"), ("gue", "mouse/0", "official"),
    ("gue", "prom/prom_300_tata", "official"), ("gue", "tf/4", "official"), ("gue", "tf/2",
    "official"),
    ("genomic-benchmarks", "human_nontata_promoters", "local"), ("genomic-benchmarks",
    "human_enhancers_cohn", "local"),
]  # fmt: skip
COORDINATES = ("official", "dedup", "chrom-holdout")
"""The splits whose coordinates are audited for all nine Genomic Benchmarks."""


def folder_of(data: Path, suite: str) -> Path:
    return (
        data / "genomic_benchmarks" if suite == "genomic-benchmarks" else data / "nt_tasks" / "GUE"
    )


def make_unit(data: TaskData, digest: str, name: str, seed: int) -> Unit:
    model = ModelSpec(name=name, kind="baseline", preset=name)
    task = data.task
    return Unit(
        suite=task.suite,
        task=task.name,
        split=data.split,
        data=digest,
        model=model,
        settings=FitSettings(),
        seed=seed,
    )


def run_baseline(data: TaskData, unit: Unit) -> dict[str, Any]:
    """Fit on the seed's train rows, choose on its validation rows, score the test part once."""
    task, name = data.task, unit.model.name
    train, valid = (data.train.take(rows) for rows in seed_split(data, unit.seed))
    began = time.monotonic()
    predict = fit_baseline(name, task, train, valid, unit.seed)
    checked = measure(task.metrics[0], task.kind, valid.labels, predict(valid))
    predicted = predict(data.test)
    values = {
        metric: measure(metric, task.kind, data.test.labels, predicted) for metric in task.metrics
    }
    found = measure_spread(
        task.metrics[0], task.kind, data.test.labels, [predicted], seed=unit.seed
    )
    return {
        "suite": unit.suite, "task": unit.task, "split": unit.split, "model": name,
        "kind": "baseline", "method": unit.method,
        "setting": unit.setting, "seed": unit.seed, "key": unit.key, "metric": task.metrics[0],
        "value": values[task.metrics[0]],
        "ci95": found.ci95, "metrics": null_nonfinite(values), "valid_metric": task.metrics[0],
        "valid": null_nonfinite({"v": checked})["v"],
        "n_train": train.n, "n_valid": valid.n, "n_test": data.test.n, "data": unit.data,
        "notes": list(data.notes),
        "seconds": round(time.monotonic() - began, 2), "device": "cpu",
        "threads": torch.get_num_threads(), "genodiff": __version__,
        "git": COMMIT, "created": stamp_time("milliseconds"),
    }  # fmt: skip


def run_audits(data: Path, out: Path) -> None:
    """Audits of every task in TASKS, and of the coordinates of all nine Genomic Benchmarks under
    each split.
    """
    kept = (
        {
            (a["suite"], a["task"], a["split"]): a
            for a in map(json.loads, (out / AUDITS).read_text().splitlines())
        }
        if (out / AUDITS).exists()
        else {}
    )
    wanted = [
        *TASKS,
        *(
            ("genomic-benchmarks", name, split)
            for name in list_task_names("genomic-benchmarks")
            for split in COORDINATES
        ),
    ]
    for suite, name, split in wanted:
        if (suite, name, split) not in kept:
            print(f"audit {suite}/{name} {split}", flush=True)
            kept[suite, name, split] = audit(
                load_task(suite, name, source=folder_of(data, suite), split=split, sequences=False)
            )
            lines = "".join(json.dumps(kept[w]) + "\n" for w in wanted if w in kept)
            atomic.write_text(out / AUDITS, lines)


def run_baselines(data: Path, out: Path, seeds: int, chosen: list[str]) -> None:
    for suite, name, split in TASKS:
        if chosen and name not in chosen:
            continue
        loaded = load_task(suite, name, source=folder_of(data, suite), split=split, offline=True)
        digest = hash_data(loaded)
        for seed in range(1, seeds + 1):
            for baseline in list_allowed_baselines(loaded.task, loaded.train):
                if baseline in TUNED_BASELINES:
                    continue  # benchmarks/finetune measures those
                unit = make_unit(loaded, digest, baseline, seed)
                if unit.key not in {
                    row["key"] for row in read_results(out)
                }:  # another process may have done it
                    row = run_baseline(loaded, unit)
                    add_rows(out, [row])
                    print(
                        f"{name} {baseline} seed {seed}: {row['metric']} {row['value']:.4f} in "
                        f"{row['seconds']:.0f} s",
                        flush=True,
                    )


def report(out: Path) -> str:
    """AUDIT.md: every audit in words, then the baselines' table."""
    rows = [row for row in read_results(out) if row["kind"] == "baseline"]
    audits = [json.loads(line) for line in (out / AUDITS).read_text().splitlines()]
    text = ["# What the benchmarks give away", ""]
    text += [
        "Made by `benchmarks/genomic_benchmarks/baselines.py`; figures in `audits.jsonl` and "
        "`results.jsonl`. Leaks are shares of the",
        "test part. Accuracies are those of predictors that read no sequence.",
        "",
    ]
    text += [
        "## Genomic Benchmarks, from coordinates",
        "",
        "| task | split | train | test | same place | overlap | majority | length tree | tree, "
        "cut | lookup same | lookup overlap |",
        "|" + "---|" * 11,
    ]
    text += [_audit_row(a) for a in audits if a["leaks"]["overlap"] is not None]
    text += [
        "",
        "A length tree far below the commonest class is a leak too: where every length stands "
        "once in each class (mouse enhancers,",
        "drosophila), a class can be told by the other one having the length in train. Whole "
        "chromosomes held out change the shares",
        "of the classes, so compare with the column majority.",
    ]
    text += ["", "## Tasks with sequences", ""]
    for found in audits:
        if found["leaks"]["same"] is not None:
            text += ["```", *audit_lines(found), "```", ""]
    if rows:
        commits, threads = (
            sorted({row["git"][:10] for row in rows if row["git"]}),
            sorted({row["threads"] for row in rows}),
        )
        minutes = sum(row["seconds"] for row in rows) / 60
        text += [
            "## Baselines",
            "",
            f"Mean over seeds (max − min). Commit {', '.join(commits)}; {_processor()}, "
            f"{threads[0]} thread(s); {minutes:.0f} minutes.",
            "",
        ]
        text += _table(rows)
    return "\n".join(text) + "\n"


def _audit_row(found: dict[str, Any]) -> str:
    shares = [
        f"{100 * found['leaks'][k]['all'][0] / found['leaks'][k]['all'][1]:.1f} %"
        for k in ("same_place", "overlap")
    ]
    values = [
        f"{100 * found['accuracy'][k]:.1f}"
        for k in ("majority", "length_tree", "length_tree_cut", "lookup_same", "lookup_overlap")
    ]
    counts = [f"{sum(found['counts'][part].values()):,}" for part in ("train", "test")]
    return "| " + " | ".join([found["task"], found["split"], *counts, *shares, *values]) + " |"


def _table(rows: list[dict[str, Any]]) -> list[str]:
    models = list(
        dict.fromkeys(
            row["model"]
            for row in sorted(
                rows, key=lambda r: ["majority", "length-tree", "kmer-lr", "cnn"].index(r["model"])
            )
        )
    )
    lines = [
        "| task | split | metric | seeds | n test | " + " | ".join(models) + " |",
        "|" + "---|" * (5 + len(models)),
    ]
    for suite, name, split in TASKS:
        own = [
            row for row in rows if (row["suite"], row["task"], row["split"]) == (suite, name, split)
        ]
        if own:
            cells = []
            for model in models:
                values = [row["value"] for row in own if row["model"] == model]
                cells.append(f"{np.mean(values):.3f} ({np.ptp(values):.3f})" if values else "")
            seeds = len({row["seed"] for row in own})
            lines.append(
                f"| {name} | {split} | {own[0]['metric']} | {seeds} | {own[0]['n_test']:,} | "
                + " | ".join(cells)
                + " |"
            )
    return lines


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=HERE / "baselines")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tasks", nargs="*", default=[])
    parser.add_argument("--audit-only", action="store_true")
    parser.add_argument("--report", action="store_true", help="only write AUDIT.md")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    os.makedirs(given.out, exist_ok=True)
    if not given.report:
        if given.data is None:
            parser.error("--data is needed")
        run_audits(given.data, given.out)
        if not given.audit_only:
            run_baselines(given.data, given.out, given.seeds, given.tasks)
    atomic.write_text(given.out / "AUDIT.md", report(given.out))


if __name__ == "__main__":
    main()
