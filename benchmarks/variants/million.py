"""A million SNVs in shards, one of them killed and resumed: bytes, time and memory.

    python benchmarks/variants/million.py --model RUN --fasta FA --work DIR --out million.json

The variants are every substitution of the genome from its first base on, as a VCF. They are scored
in one run, and beside it in shards, one after the other. One shard is killed (SIGKILL) in the
middle of its work and the same command is given again. `genodiff merge` joins the shards, and the
bytes are compared. Smaller files are scored too, for the peak of memory. Each process has one
thread; two run at a time.
"""

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from genodiff.io.faidx import Genome

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "speed"))
from timing import provenance

STEP = 1 << 14  # bases that are read at a time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--fasta", required=True)
    parser.add_argument("--work", type=Path, required=True, help="folder for all files")
    parser.add_argument("--out", type=Path, required=True, help="JSON to write")
    parser.add_argument("--variants", type=int, default=1_000_000)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--killed", type=int, default=3, help="the shard that is killed")
    parser.add_argument("--kill-after", type=float, default=40.0, help="seconds of scoring")
    a = parser.parse_args()
    a.work.mkdir(parents=True, exist_ok=True)
    sizes = [n for n in (10**3, 10**4, 10**5) if n < a.variants] + [a.variants]
    files = {n: a.work / f"snvs{n}.vcf" for n in sizes}
    with Genome(a.fasta) as genome:
        for n, file in files.items():
            write_variants(genome, n, file)
    common = ("--model", a.model, "--fasta", a.fasta, "--threads", "1", "--force", "--fresh")
    whole: dict[str, dict[str, float]] = {}

    def score_whole() -> None:
        for n, file in files.items():
            whole[str(n)] = run("score", str(file), *common, "--out", str(a.work / f"{n}.vcf"))

    beside = threading.Thread(target=score_whole)
    beside.start()
    shards, kept = [], 0
    for i in range(1, a.shards + 1):
        out = a.work / f"part{i}.vcf"
        words = ("score", str(files[a.variants]), *common[:-1], "--out", str(out))
        words += ("--shard", f"{i}/{a.shards}")
        if i == a.killed:
            kept = kill_while_it_scores(words, out, a.kill_after)
        shards.append(run(*words))
    beside.join()
    parts = [str(a.work / f"part{i}.vcf") for i in range(1, a.shards + 1)]
    merged = a.work / "merged.vcf"
    merge = run("merge", *parts, "--out", str(merged), "--force")
    digests = [digest(merged), digest(a.work / f"{a.variants}.vcf")]
    result = {
        "variants": a.variants, "shards": a.shards, "model": Path(a.model).name,
        "identical": digests[0] == digests[1], "sha256": digests[0],
        "killed": {"shard": a.killed, "records_kept": kept},
        "whole": whole, "shard_runs": shards, "merge": merge, **provenance(),
        "command": "python benchmarks/variants/million.py "
        f"--variants {a.variants} --shards {a.shards} --killed {a.killed}",
    }  # fmt: skip
    a.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result))
    if digests[0] != digests[1]:
        sys.exit("the merged bytes differ from those of one run")


def write_variants(genome: Genome, n: int, path: Path) -> None:
    """The first `n` substitutions of the genome."""
    with path.open("w") as file:
        file.write("##fileformat=VCFv4.2\n")
        for contig, length in genome.contigs.items():
            file.write(f"##contig=<ID={contig},length={length}>\n")
        file.write("#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n")
        for _, line in zip(range(n), substitute_all(genome), strict=False):
            file.write(line)


def substitute_all(genome: Genome) -> Iterator[str]:
    """A line for every substitution, in the order of the genome."""
    for contig, length in genome.contigs.items():
        for start in range(0, length, STEP):
            letters = genome.fetch(contig, start, min(start + STEP, length)).decode().upper()
            for i, ref in enumerate(letters, start + 1):
                if ref in "ACGT":
                    for alt in "ACGT".replace(ref, ""):
                        yield f"{contig}\t{i}\t.\t{ref}\t{alt}\t.\t.\t.\n"


def start(words: Sequence[str]) -> subprocess.Popen[bytes]:
    """A genodiff process of one thread."""
    command = [sys.executable, "-m", "genodiff", *words]
    return subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"})


def run(*words: str) -> dict[str, float]:
    """Run genodiff to its end; wall and CPU seconds, and the peak of memory."""
    began, process = time.monotonic(), start(words)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"genodiff {words[0]} failed")
    return {
        "wall_s": round(time.monotonic() - began, 1),
        "cpu_s": round(used.ru_utime + used.ru_stime, 1),
        "peak_mib": round(used.ru_maxrss / 1024, 1),
    }


def kill_while_it_scores(words: Sequence[str], out: Path, seconds: float) -> int:
    """Kill genodiff some seconds after its first score; how many records its journal has kept."""
    process, journal = start(words), Path(f"{out}.partial")
    while not journal.exists() and process.poll() is None:
        time.sleep(0.2)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    if process.wait() != -signal.SIGKILL or out.exists():
        sys.exit("the shard was done before it was killed; give a smaller --kill-after")
    return sum(line.endswith(b"\n") for line in journal.open("rb")) - 1


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    main()
