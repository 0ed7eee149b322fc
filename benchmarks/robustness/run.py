"""What a run survives: faults injected by seed, each with a score.

    python benchmarks/robustness/run.py [--quick] [--only NAME ...] [--seed 1] [--out FOLDER]

`make faults` runs it. Results are added to results.jsonl beside this file (or in --out), and
RESULTS.md is written from the newest of each fault. `--quick` tries each fault a few times, and
writes nothing. The exit code is 1 where a fault was not survived.
"""

import argparse
import json
import random
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import machine_faults as machine  # noqa: E402
import torch  # noqa: E402
import training_faults as training  # noqa: E402
from commands import cpu  # noqa: E402
from score import Fault, Trial  # noqa: E402
from soak import soak  # noqa: E402

import genodiff.training.run  # noqa: E402, F401
from genodiff.runs.folder import find_git_revision  # noqa: E402


class Row(NamedTuple):
    """A fault, and how often it is tried in full and by --quick."""

    fault: Fault
    full: int
    quick: int


FAULTS = {
    "kill -9 by step": Row(training.kill_by_step, 80, 2),
    "kill -9 by I/O operation": Row(training.kill_by_operation, 80, 2),
    "kill -9 by time": Row(training.kill_by_time, 40, 1),
    "every I/O operation of a run": Row(training.crash_in_every_operation, 9999, 3),
    "newest checkpoint corrupted": Row(training.corrupt_newest, 45, 3),
    "disk full": Row(training.fill_disk, 20, 1),
    "signals": Row(training.send_signals, 50, 2),
    "NaN and Inf": Row(training.inject_nonfinite, 200, 4),
    "two runs, one folder": Row(machine.race_for_folder, 50, 1),
    "first opens of a FASTA at once": Row(machine.race_for_index, 1600, 16),
    "a rank killed": Row(machine.kill_a_rank, 50, 0),
    "layouts of ranks and workers": Row(machine.compare_layouts, 9, 0),
    "growth": Row(machine.measure_growth, 10_000, 0),
    "soak": Row(soak, 29, 10),
}


def measure(name: str, n: int, seed: int) -> dict[str, object]:
    """Try one fault; the row of results."""
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        trial = Trial(
            n, random.Random(seed * 1000 + zlib.crc32(name.encode()) % 1000), Path(folder)
        )
        began = time.monotonic()
        score = FAULTS[name].fault(trial)
    return {
        "fault": name, "tried": score.tried, "survived": score.survived, "figures": score.figures,
        "faults": score.faults[:20], "seconds": round(time.monotonic() - began), "seed": seed,
        "commit": find_git_revision(), "cpu": cpu(), "torch": torch.__version__,
    }  # fmt: skip


def format_page(rows: list[dict[str, object]]) -> str:
    """RESULTS.md."""
    newest = {str(row["fault"]): row for row in rows}
    lines = [
        "# Faults that a run survives", "",
        "Each fault is injected by seed. A run survives it where it ends with the losses and the "
        "tensors of a run that nothing disturbed, bit for bit, and where the message and the exit "
        "code are as documented. Made by `make faults`; what each fault is stands in docstrings of "
        "`benchmarks/robustness/`. Networks are tiny; the code paths are those of any run.", "",
        "| fault | what was done | tried | survived | figures | seconds | seed | commit |",
        "|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, row in FAULTS.items():
        found = newest.get(name)
        about = " ".join((row.fault.__doc__ or "").split())
        if found is None:
            lines.append(f"| {name} | {about} | not run yet | | | | | |")
            continue
        figures = "; ".join(f"{k}: {v}" for k, v in dict(found["figures"]).items())  # type: ignore[call-overload]
        lines.append(
            f"| {name} | {about} | {found['tried']} | {found['survived']} | {figures} | "
            f"{found['seconds']} | {found['seed']} | {str(found['commit'])[:8]} |"
        )
    machines = sorted({f"{row['cpu']}, torch {row['torch']}" for row in newest.values()})
    return "\n".join([*lines, "", *(f"Measured on {one}." for one in machines), ""])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", choices=FAULTS)
    parser.add_argument("--n", type=int, help="tries of each fault")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    results = asked.out / "results.jsonl"
    bad = False
    for name in asked.only or FAULTS:
        n = asked.n or (FAULTS[name].quick if asked.quick else FAULTS[name].full)
        if not n:
            continue
        row = measure(name, n, asked.seed)
        bad |= row["survived"] != row["tried"]
        print(
            f"{name}: {row['survived']} of {row['tried']} survived, {row['seconds']} s", flush=True
        )
        for fault in row["faults"]:  # type: ignore[attr-defined]
            print(f"    {fault}", flush=True)
        if not asked.quick:
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            rows = [json.loads(line) for line in results.read_text().splitlines()]
            (asked.out / "RESULTS.md").write_text(format_page(rows), encoding="utf-8")
    sys.exit(int(bad))


if __name__ == "__main__":
    main()
