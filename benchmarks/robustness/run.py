"""What a run survives: faults injected by seed, each with a score.

    python benchmarks/robustness/run.py [--quick | --page] [--only NAME ...] [--seed 1]
        [--out FOLDER]

`make faults` runs it. Results are added to results.jsonl beside this file (or in --out), and
RESULTS.md is written from the newest of each fault. `--quick` tries each fault a few times, and
writes nothing. The exit code is 1 where a fault was not survived.
"""

import argparse
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
import rank_faults as ranks  # noqa: E402
import torch  # noqa: E402
import training_faults as training  # noqa: E402
from page import write_page, write_row  # noqa: E402
from score import Fault, Score, Trial  # noqa: E402
from soak import soak  # noqa: E402

import genodiff.training.run  # noqa: E402, F401


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
    "a rank killed": Row(ranks.kill_a_rank, 50, 2),
    "a rank in parts killed": Row(ranks.kill_a_rank_in_parts, 50, 1),
    "a rank of a whole command killed": Row(ranks.kill_a_rank_of_a_command, 5, 0),
    "a rank under torchrun killed": Row(ranks.kill_a_rank_under_torchrun, 6, 0),
    "layouts of ranks and workers": Row(machine.compare_layouts, 9, 0),
    "growth": Row(machine.measure_growth, 10_000, 0),
    "soak": Row(soak, 29, 5),
}


def measure(name: str, n: int, seed: int) -> tuple[Score, float]:
    """Try one fault; its score, and how many seconds it took."""
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        draw = random.Random(seed * 1000 + zlib.crc32(name.encode()) % 1000)
        began = time.monotonic()
        score = FAULTS[name].fault(Trial(n, draw, Path(folder)))
        return score, time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", action="append", choices=FAULTS)
    parser.add_argument("--n", type=int, help="tries of each fault")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--page", action="store_true", help="only write RESULTS.md again")
    asked = parser.parse_args()
    if asked.page:
        write_page(asked.out)
        return
    torch.set_num_threads(1)
    bad = False
    for name in asked.only or FAULTS:
        row = FAULTS[name]
        n = asked.n or (row.quick if asked.quick else row.full)
        if not n:
            continue
        score, seconds = measure(name, n, asked.seed)
        bad |= score.survived != score.tried
        print(f"{name}: {score.survived} of {score.tried} survived, {seconds:.0f} s", flush=True)
        for fault in score.faults:
            print(f"    {fault}", flush=True)
        if not asked.quick:
            write_row(
                asked.out, name, row.fault.__doc__ or "", *score[:3], faults=score.faults,
                seconds=seconds, command="make faults", seed=asked.seed,
            )  # fmt: skip
    sys.exit(int(bad))


if __name__ == "__main__":
    main()
