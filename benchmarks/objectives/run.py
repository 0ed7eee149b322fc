"""The tables of objectives: every comparison of this folder, and RESULTS.md.

    python benchmarks/objectives/run.py --fasta sacCer3.fa.gz --human hg38_sparse.fa.gz
        --text tinyshakespeare.txt.gz [--only NAME] [--threads 1]
    python benchmarks/objectives/run.py --spec FILE.yaml --fasta FASTA [--out FOLDER]

Each comparison goes on where it stopped. --only-write makes RESULTS.md again from what is there;
FINDINGS.md is its end. A comparison whose runs are not there keeps its section of RESULTS.md.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from commands import cpu, last_session  # noqa: E402
from trial_page import write_page  # noqa: E402
from trials import compare_schedules, read_spec, run_comparison  # noqa: E402

from genodiff.io.progress import ProgressDisplay  # noqa: E402
from genodiff.jobs.machine import choose_device  # noqa: E402

SPECS = {
    "yeast-83k": "--fasta",
    "yeast-noise": "--fasta",
    "yeast-rates": "--fasta",
    "yeast-rates-ps": "--fasta",
    "yeast-blocks": "--fasta",
    "human-blocks": "--human",
    "yeast-blocks-470k": "--fasta",
    "human-blocks-470k": "--human",
    "yeast-470k": "--fasta",
    "yeast-ablation": "--fasta",
    "shakespeare-470k": "--text",
    "shakespeare-ablation": "--text",
    "shakespeare-long": "--text",
}
"""The specs of this folder, and the flag that their data come by."""

MARGIN = 0.002
"""Bits within which two rows are called equivalent."""


def compare(file: Path, out: Path, over: dict[str, Any]) -> None:
    """Train and score what is missing of a comparison, and write its page."""
    spec, device = read_spec(file, over), choose_device("auto")
    with ProgressDisplay() as display:
        entries = run_comparison(spec, file, out, device=device, progress=display.show_batches)
    write_page(spec, entries, compare_schedules(spec, entries, device=device), out, MARGIN)


def section(name: str, out: Path) -> list[str]:
    """A comparison's tables, and what they were made with; its page beside them."""
    lines = (out / "table.md").read_text(encoding="utf-8").splitlines()
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    runs = [run for row in results["rows"] for run in row["runs"]]
    sessions = [last_session(out / "runs" / run) for run in runs]
    commits = ", ".join(dict.fromkeys(str(session["git"])[:12] for session in sessions))
    threads = ", ".join(dict.fromkeys(str(session["threads"]) for session in sessions))
    shutil.copy(out / "compare.html", HERE / f"{name}.html")
    made = (
        f"`benchmarks/objectives/{name}.yaml`; trained at {commits} on {cpu()}, {threads} thread; "
        f"with curves: `{name}.html`, which `run.py` writes."
    )
    lines = [line for line in lines if not line.startswith("<!--")]  # the seal of table.md
    shown = [f"#{line}" if line.startswith("#") else line for line in lines]
    return [*shown, *verdicts(results), "", made, ""]


def verdicts(results: dict[str, Any]) -> list[str]:
    """What the comparisons with the row that others are set against carry, over several seeds."""
    rows = results["rows"]
    other = next((row["minus"]["row"] for row in rows if row["minus"]), None)
    seeds = len(rows[0]["seeds_bits"])
    by: dict[str, list[str]] = {}
    for pair in results["pairs"] if seeds > 1 else []:
        if other in (pair["a"], pair["b"]):
            first = pair["a"] != other
            words = {} if first else {"ahead": "behind", "behind": "ahead"}
            said, *rest = pair["verdict"].split(",")
            verdict = ",".join([words.get(said, said), *rest])
            by.setdefault(verdict, []).append(pair["a"] if first else pair["b"])
    if not by:
        return []
    said = "; ".join(f"{verdict}: {', '.join(names)}" for verdict, names in by.items())
    return ["", f"Over {seeds} seeds, against {other}: {said}."]


def read_sections() -> dict[str, list[str]]:
    """The sections of RESULTS.md as it stands, by title; the findings are none of them."""
    path = HERE / "RESULTS.md"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found: dict[str, list[str]] = {}
    mine: list[str] = []
    for line in lines:
        if line.startswith("## "):
            mine = found.setdefault(line.removeprefix("## "), [])
        mine.append(line)
    return found


def title_of(name: str) -> str:
    """The title of a comparison, which its section has too."""
    lines = (HERE / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith("title: ")).removeprefix("title: ")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fasta", type=Path, help="yeast, sacCer3")
    parser.add_argument("--human", type=Path, help="pieces of hg38")
    parser.add_argument("--text", type=Path, help="tinyshakespeare")
    parser.add_argument(
        "--out", type=Path, default=Path("runs/objectives"), help="where everything is kept"
    )
    parser.add_argument("--spec", type=Path, help="another comparison, and nothing else")
    parser.add_argument("--only", choices=sorted(SPECS), help="one comparison")
    parser.add_argument("--threads", type=int)
    parser.add_argument(
        "--only-write", action="store_true", help="make RESULTS.md again from what is there"
    )
    asked = parser.parse_args()
    if asked.threads:
        torch.set_num_threads(asked.threads)
    if asked.spec is not None:
        data = {name: getattr(asked, name) for name in ("fasta", "text")}
        over = {name: str(path.absolute()) for name, path in data.items() if path is not None}
        compare(asked.spec, asked.out / asked.spec.stem, over)
        return
    before = read_sections()
    text = [
        "# Objectives",
        "",
        "Several objectives and networks on one store and the same windows, at equal tokens and "
        "parameters; where a table has a column of compute, they differ in it.",
        "Written by `benchmarks/objectives/run.py`; what each objective's figure bounds stands "
        "in the README.",
        "",
    ]
    for name, flag in SPECS.items():
        data = {"--fasta": asked.fasta, "--human": asked.human, "--text": asked.text}[flag]
        over = {flag.replace("human", "fasta").strip("-"): str(data.absolute())} if data else {}
        if not asked.only_write and asked.only in (None, name):
            compare(HERE / f"{name}.yaml", asked.out / name, over)
        if (asked.out / name / "table.md").exists():
            text += section(name, asked.out / name)
        else:
            text += [*before.get(title_of(name), [])]
    findings = HERE / "FINDINGS.md"
    text += [findings.read_text(encoding="utf-8")] if findings.exists() else []
    (HERE / "RESULTS.md").write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
