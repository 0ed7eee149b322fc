"""`make bench`: every benchmark of this folder, its result added to results.jsonl, and RESULTS.md
written from the newest of each.

What takes long or much memory runs only when it is named (`run.py memory`), and keeps its rows.
LIMITS.md is the last part of the page.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SCRIPTS = ("scan", "step", "blocks", "data", "sample")
ASKED: dict[str, list[list[str]]] = {
    "memory": [["--preset", "caduceus-ph-7.7m"], ["--preset", "caduceus-ps-7.7m"]],
    "variants": [],  # needs trained runs: python benchmarks/speed/variants.py ... >> results.jsonl
}


def main() -> None:
    for name in sys.argv[1:] or SCRIPTS:
        for more in ASKED.get(name, [[]]):
            print(" ".join([name, *more, "..."]), file=sys.stderr, flush=True)
            done = subprocess.run(
                [sys.executable, HERE / f"{name}.py", "--json", *more],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            with (HERE / "results.jsonl").open("a") as file:
                file.write(json.dumps(json.loads(done.stdout)) + "\n")
    rows = map(json.loads, (HERE / "results.jsonl").read_text().splitlines())
    newest = {
        (row["benchmark"], row["shape"].get("preset") if row["benchmark"] in ASKED else None): row
        for row in rows
    }
    (HERE / "RESULTS.md").write_text(page(newest))


def page(newest: dict[tuple[str, str | None], dict[str, Any]]) -> str:
    """RESULTS.md."""
    parts = [
        "# Speed on one CPU core\n",
        "Written by `make bench` from the newest row of each benchmark in `results.jsonl`. All "
        "times are CPU seconds of one process on one",
        "thread (`time.process_time`), the variants taking turns; figures are medians, ratios "
        "medians over rounds. The machine was shared:",
        "`load` says how busy it was.\n",
    ]
    for name in (*SCRIPTS, *ASKED):
        for (benchmark, _), row in newest.items():
            if benchmark == name:
                parts += section(row)
    parts.append((HERE / "LIMITS.md").read_text())
    return "\n".join(parts).rstrip() + "\n"


def section(row: dict[str, Any]) -> list[str]:
    """One benchmark: its figures as a table, then where they come from."""
    out = [
        f"## {row['benchmark']}: " + ", ".join(f"{k} {v}" for k, v in row["shape"].items()) + "\n"
    ]
    if "ktok_per_s" in row:
        spread, ratios = row["spread_ktok_per_s"], row["ratios"]
        out += [
            "| variant | thousand tokens/s | slowest to fastest round | native is faster by |",
            "|---|---|---|---|",
        ]
        out += [
            f"| {n} | {v} | {spread[n][0]} – {spread[n][1]} | {ratios.get(n, 1)} |"
            for n, v in row["ktok_per_s"].items()
        ]
        out += [
            "",
            f"Fraction of the measured ceiling ({row['ceiling_ktok_per_s']} thousand tokens/s): "
            f"{row['ceiling_fraction']}.",
            "",
        ]
    taken = {
        "benchmark",
        "shape",
        "ktok_per_s",
        "spread_ktok_per_s",
        "ceiling_ktok_per_s",
        "ceiling_fraction",
    }
    taken |= {
        "commit",
        "command",
        "hardware",
        "threads",
        "load",
        "torch",
        "python",
        "rounds",
        "seed",
    }
    taken |= {"ratios"} if "ktok_per_s" in row else set()
    out += [f"- {name}: {json.dumps(value)}" for name, value in row.items() if name not in taken]
    where = (
        f"`{row['command']}` at {row['commit'][:12]}, {row['hardware']}, {row['threads']} "
        f"thread, load {row['load']}"
    )
    return [
        *out,
        "",
        f"{where}, torch {row['torch']}, {row['rounds']} rounds, seed {row['seed']}.",
        "",
    ]


if __name__ == "__main__":
    main()
