"""Designs of yeast promoters by every method, judged by what did not guide them.

    python benchmarks/design/run.py --data FOLDER --out FOLDER [--jobs 2]

--data is the folder with `promoters/yeast` and `genomes`. Under --out stand, each made once, so the
same command goes on where it stopped:

    data/       what yeast.py writes
    generator/  a network on the surroundings of promoters; high/ and low/ go on from it (for cfg)
    A/, B/      the generator fine-tuned on two thirds of the measured cores: A guides, B judges
    designs/    the designs of each seed, aim and method, with what they cost

The third judge is a ridge on words, fitted on third C. results.jsonl, RESULTS.md and pictures are
written to --here. FINDINGS.md there is the end of RESULTS.md. --tiny does all of it with sizes
that mean nothing. Ledidi and tangermeme have rows where they are installed.
"""

import argparse
import json
import multiprocessing
import os
import shutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from commands import genodiff  # noqa: E402
from yeast import read_fasta, write_data  # noqa: E402

AIMS = {"high": 1, "low": -1}


class Sizes(NamedTuple):
    """What the demonstration takes."""

    train_steps: int = 700
    tuning_steps: int = 100  # of the conditional networks
    epochs: int = 8
    n: int = 4  # designs of a method, an aim and a seed
    many: int = 20  # of smc, of editing in rounds, and of the methods without calls
    few: int = 2  # of best-of-n
    calls: int = 640  # of the oracle, for each design
    steps: int = 16


TINY = Sizes(4, 2, 1, 2, 4, 1, 320, 4)
MANY = ("unguided", "cfg", "smc", "edit", "edit-even")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--here", type=Path, default=HERE)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--only-write", action="store_true", help="tables of what is there")
    asked = parser.parse_args()
    sizes, out = TINY if asked.tiny else Sizes(), asked.out.resolve()
    if not asked.only_write:
        write_data(asked.data, out / "data", seed=1)
        train(out, sizes)
        fine_tune(out, sizes, asked.jobs)
        with ProcessPoolExecutor(asked.jobs, multiprocessing.get_context("spawn")) as pool:
            for done in [pool.submit(design, out, sizes, seed) for seed in asked.seeds]:
                done.result()
    from design_tables import write_results

    asked.here.mkdir(parents=True, exist_ok=True)
    write_results(out, asked.here, asked.seeds, sizes.n)


def train(out: Path, sizes: Sizes) -> None:
    """The generator: oriented windows of 80 bases around starts of transcription."""
    data, run = out / "data", out / "generator"
    if not is_done(run):
        genodiff(
            *("train", "--fasta", data / "surroundings.fa", "--bed", data / "surroundings.bed"),
            *("--preset", "caduceus-ph-83k", "--seq-len", 80, "--batch-size", 128),
            *("--rc-augment", "false", "--lr", "4e-3", "--warmup-steps", 50),
            *("--max-steps", sizes.train_steps, "--seed", 1, "--threads", 1, "--out", run),
        )
        mark(run)


def fine_tune(out: Path, sizes: Sizes, jobs: int) -> None:
    """Two oracles on thirds A and B, and the generator on the ends of third A."""
    data, generator = out / "data", out / "generator"

    def fit(third: str) -> None:
        run = out / third
        if not is_done(run):
            genodiff(
                *("finetune", "table", "--train", data / f"{third}.csv"),
                *("--test", data / "C.csv", "--kind", "regression", "--metric", "spearman"),
                *("--name", f"third{third}", "--model", f"generator={generator}"),
                *("--method", "full", "--head", "conv", "--rc", "none", "--seeds", 1),
                *("--epochs", sizes.epochs, "--batch-size", 128, "--lr", "2e-3"),
                *("--threads", 1, "--out", run),
            )
            mark(run)

    def condition(aim: str) -> None:
        run = out / aim
        if not is_done(run):
            genodiff(
                *("train", "--fasta", data / f"{aim}.fa", "--bed", data / f"{aim}.bed"),
                *("--init", generator, "--seq-len", 80, "--batch-size", 128),
                *("--rc-augment", "false", "--lr", "1e-3", "--warmup-steps", 10),
                *("--max-steps", sizes.tuning_steps, "--seed", 1, "--threads", 1, "--out", run),
            )
            mark(run)

    with ThreadPoolExecutor(jobs) as pool:
        work = [pool.submit(fit, third) for third in "AB"]
        work += [pool.submit(condition, aim) for aim in AIMS]
        for done in work:
            done.result()


def is_done(run: Path) -> bool:
    return (run / "done").exists()


def mark(run: Path) -> None:
    (run / "done").touch()


def design(out: Path, sizes: Sizes, seed: int) -> None:
    """All methods for both aims, the cheapest first."""
    import torch
    from methods import Task, list_methods, write_designs
    from promoter_oracles import Counting, OneHotOracle, find_unit

    from genodiff.io.process import keep_freed_memory

    torch.set_num_threads(1)
    keep_freed_memory()
    oracle = OneHotOracle(find_unit(out / "A"))
    natives = read_fasta(out / "data" / "natives_held.fa")
    for method in list_methods():
        for aim, sign in AIMS.items():
            folder = out / "designs" / f"seed{seed}" / aim
            path = folder / f"{method}.fa"
            if path.with_suffix(".json").exists():
                continue
            (folder / "raw").mkdir(parents=True, exist_ok=True)
            asked = Counting(oracle, sign)
            n = sizes.few if method == "best-of-n" else sizes.n
            if method in MANY and (aim == "high" or method != "smc"):
                n = sizes.many
            task = Task(
                out / "generator", out / aim, natives, asked, n, sizes.calls, sizes.steps, seed,
                folder / "raw",
            )  # fmt: skip
            begun = time.process_time()
            write_designs(method, task, path)
            seconds = (time.process_time() - begun) / n
            cost = {"n": n, "calls": asked.calls / n, "cpu_seconds": round(seconds, 3)}
            path.with_suffix(".json").write_text(json.dumps(cost) + "\n")
            print(seed, aim, method, cost, flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if shutil.which("genodiff") is None:
        sys.exit("genodiff is not installed")
    main()
