"""What the benchmarks give away: every task's audit, and AUDIT.md.

    python benchmarks/finetune/audits.py --data SHARED/data [--only-write]

--data is a folder with genomic_benchmarks/ and nt_tasks/GUE/. The tasks are those of run.py, and
all nine Genomic Benchmarks by their coordinates under each split. An audit that stands in
audits.jsonl is not made again. `genodiff finetune audit` prints the same for one task.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from run import SUITES  # noqa: E402

from genodiff.io import atomic  # noqa: E402
from genodiff.tasks.audit import audit, audit_lines  # noqa: E402
from genodiff.tasks.suite import list_task_names  # noqa: E402
from genodiff.tasks.task import load_task  # noqa: E402

AUDITS = HERE / "audits.jsonl"
NINE = "genomic-benchmarks"
COORDINATES = ("official", "dedup", "chrom-holdout")
"""The splits whose coordinates are audited for all nine Genomic Benchmarks."""

WANTED = [
    *((name, task, "local" if name == NINE else "official")
      for name, suite in SUITES.items() for task in suite.tasks),
    *((NINE, name, split) for name in list_task_names(NINE) for split in COORDINATES),
]  # fmt: skip


def read_audits() -> dict[tuple[str, str, str], dict[str, Any]]:
    """The audits that are there, by suite, task and split."""
    lines = AUDITS.read_text(encoding="utf-8").splitlines() if AUDITS.exists() else []
    return {(a["suite"], a["task"], a["split"]): a for a in map(json.loads, lines)}


def make_audits(data: Path) -> None:
    """Those that are missing; the file is written anew after each."""
    kept = read_audits()
    for suite, name, split in WANTED:
        if (suite, name, split) not in kept:
            print(f"audit {suite}/{name} {split}", file=sys.stderr, flush=True)
            source = data / SUITES[suite].data
            task = load_task(suite, name, source=source, split=split, sequences=False)
            kept[suite, name, split] = audit(task)
            atomic.write_text(
                AUDITS, "".join(json.dumps(kept[key]) + "\n" for key in WANTED if key in kept)
            )


def describe_audits() -> str:
    """AUDIT.md."""
    known = read_audits()
    audits = [known[key] for key in WANTED if key in known]
    text = [
        "# What the benchmarks give away",
        "",
        "Made by `benchmarks/finetune/audits.py`; figures in `audits.jsonl`. Leaks are shares of",
        "the test part. Accuracies are those of predictors that read no sequence.",
        "",
        "## Genomic Benchmarks, from coordinates",
        "",
        "| task | split | train | test | same place | overlap | majority | length tree | tree, "
        "cut | lookup same | lookup overlap |",
        "|" + "---|" * 11,
        *(_describe_row(a) for a in audits if a["leaks"]["overlap"] is not None),
        "",
        "A length tree far below the commonest class is a leak too: where every length stands",
        "once in each class (mouse enhancers, drosophila), a class can be told by the other one",
        "having the length in train. Whole chromosomes held out change the shares of the classes,",
        "so compare with the column majority.",
        "",
        "## Tasks with sequences",
        "",
    ]
    for found in audits:
        if found["leaks"]["same"] is not None:
            text += ["```", *audit_lines(found), "```", ""]
    return "\n".join(text)


def _describe_row(found: dict[str, Any]) -> str:
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only-write", action="store_true", help="only write AUDIT.md")
    given = parser.parse_args()
    if not given.only_write:
        if given.data is None:
            parser.error("--data is needed")
        make_audits(given.data)
    atomic.write_text(HERE / "AUDIT.md", describe_audits())


if __name__ == "__main__":
    main()
