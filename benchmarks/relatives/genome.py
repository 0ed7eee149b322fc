"""The constraint of a whole genome, from FASTA files to tracks, beside LAST and PHAST in one log.

    python benchmarks/relatives/genome.py WORK [--threads 2] [--opponents]

On a quiet machine. Yeast with four relatives. Each step is a process of its own, whose wall time,
CPU time and peak memory are taken: the index and the fit of the related genomes with an empty cache
(on 1 kb, so that little else is done), then the whole genome with what was fitted; with --opponents
last.sh (lastdb, last-train, lastal, last-split), star.py and phast.sh, as RESULTS.md of `opponents`
tells. WORK/genome.json has the figures, WORK/log what was printed.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

SHARED = Path(os.environ["GENODIFF_SHARED"]) / "data"
FASTA = SHARED / "genomes" / "sacCer3.fa.gz"
YEASTS = SHARED / "relatives" / "yeast"
FOUR = ("Spar_CBS432", "Spar_UFRJ50816", "Sarb_H6", "Seub_FM1318_orfs")
HERE = Path(__file__).resolve().parent


def measure(name: str, words: list[str], work: Path, env: dict[str, str]) -> dict[str, object]:
    """Run a command; its seconds of wall and of CPU, its children's included, and peak memory."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    with open(work / "log", "a") as log:
        log.write(f"\n== {name}: {' '.join(words)}\n")
        log.flush()
        done = subprocess.Popen(words, stdout=log, stderr=log, env=env, cwd=work)
        _, status, usage = os.wait4(done.pid, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    told = {
        "step": name, "exit": os.waitstatus_to_exitcode(status),
        "wall_s": round(time.monotonic() - began, 1), "cpu_s": round(cpu, 1),
        "peak_mb": round(usage.ru_maxrss / 1024),
    }  # fmt: skip
    print(json.dumps(told), flush=True)
    return told


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--opponents", action="store_true")
    asked = parser.parse_args()
    work = asked.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    cache = {"GENODIFF_CACHE": str(work / "cache"), "OMP_NUM_THREADS": str(asked.threads)}
    env = {**os.environ, **cache}
    files = [str(YEASTS / f"{name}.fa.gz") for name in FOUR]
    verb = [sys.executable, "-m", "genodiff", "constraint", str(FASTA), "--relatives", *files]
    verb += ["--threads", str(asked.threads), "--force", "--fresh"]
    rows = [
        measure("index and fit", [*verb, "--region", "chrI:1-1,000", "-o", "first"], work, env),
        measure("whole genome", [*verb, "-o", "whole"], work, env),
    ]
    told = json.loads((work / "whole" / "constraint.json").read_text())
    rows.append({"scored": told["scored"], "known": told["known"], "elements": told["elements"]})
    if asked.opponents:
        plain = work / "sacCer3.fa"
        if not plain.exists():
            with open(plain, "wb") as file:
                subprocess.run(["zcat", str(FASTA)], stdout=file, check=True)
        pairs = [f"{name}={file}" for name, file in zip(FOUR, files, strict=True)]
        last = ["bash", str(HERE / "opponents" / "last.sh"), str(plain), "last", *pairs]
        rows.append(measure("LAST", last, work, env))
        star = [sys.executable, str(HERE / "opponents" / "star.py"), str(plain), "star"]
        mafs = [f"last/{name}.maf" for name in FOUR]
        rows.append(measure("star alignments", [*star, *mafs], work, env))
        (work / "tree.nh").write_text(told["tree"].replace("sacCer3:", "target:"))
        contigs = sorted(str(one) for one in (work / "star").glob("*.fa"))
        phast = ["bash", str(HERE / "opponents" / "phast.sh"), "tree.nh", "star/chrXIV.fa", ""]
        rows.append(measure("PHAST", [*phast, "phast", *contigs], work, env))
    (work / "genome.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
