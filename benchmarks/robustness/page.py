"""The rows of results, and RESULTS.md that is written from the newest row of each name."""

import json
from pathlib import Path
from typing import Any

import torch
from commands import cpu

from genodiff.runs.folder import find_git_revision

FILE, PAGE, FINDINGS = "results.jsonl", "RESULTS.md", "FINDINGS.md"
_ABOUT = (
    "Each fault is injected by seed. A run survives it where it ends with the losses and the "
    "tensors (weights, their averages, the optimizer's) of a run that nothing disturbed, bit for "
    "bit, goes on from the step it has to, and says and returns what is documented. What each "
    "fault is stands in docstrings of `benchmarks/robustness/`. Networks are tiny; the code paths "
    "are those of any run. `DATA` is a folder that is not part of this repository."
)


def write_row(
    folder: Path, name: str, about: str, tried: int, survived: int, figures: dict[str, Any],
    *, faults: list[str], seconds: float, command: str, seed: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """Add a row of results and write the page again; the row."""
    row = {
        "fault": name, "about": " ".join(about.split()), "tried": tried, "survived": survived,
        "figures": figures, "faults": faults[:20], "seconds": round(seconds), "seed": seed,
        "command": command, "commit": find_git_revision(), "cpu": cpu(),
        "torch": torch.__version__,
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / FILE).open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    write_page(folder)
    return row


def write_page(folder: Path) -> None:
    """RESULTS.md of the rows in `folder`, with FINDINGS.md where there is one."""
    rows = [json.loads(line) for line in (folder / FILE).read_text().splitlines()]
    said = folder / FINDINGS
    findings = said.read_text(encoding="utf-8") if said.exists() else ""
    (folder / PAGE).write_text(format_page(rows, findings), encoding="utf-8")


def format_page(rows: list[dict[str, Any]], findings: str = "") -> str:
    """The page: findings, a table, what was not survived, the machine."""
    newest = {str(row["fault"]): row for row in rows}
    lines = ["# Faults that a run survives", "", _ABOUT, ""]
    if findings:
        lines += [findings.strip(), ""]
    lines += [
        "## All figures", "",
        "| fault | what was done | tried | survived | figures | seconds | seed | commit |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, row in newest.items():
        figures = "; ".join(f"{k}: {_show(v)}" for k, v in row["figures"].items())
        lines.append(
            f"| {name} | {row['about']} | {row['tried']:,} | {row['survived']:,} | {figures} | "
            f"{row['seconds']:,} | {row['seed']} | {str(row['commit'])[:8]} |"
        )
    failed = {name: row["faults"] for name, row in newest.items() if row["faults"]}
    if failed:
        lines += ["", "## Not survived", ""]
        lines += [f"- {name}: {fault}" for name, some in failed.items() for fault in some]
    lines += ["", "## Commands", ""]
    commands = dict.fromkeys(str(row["command"]) for row in newest.values())
    lines += ["```", *commands, "```", ""]
    machines = sorted({f"{row['cpu']}, torch {row['torch']}" for row in newest.values()})
    return (
        "\n".join([*lines, *(f"Measured on {one}, shared with other work." for one in machines)])
        + "\n"
    )


def _show(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)
