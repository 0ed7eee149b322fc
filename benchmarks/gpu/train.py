"""A real training run on a GPU: yeast for some minutes.

    python benchmarks/gpu/train.py --out FILE --folder FOLDER --fasta GENOME [--minutes 2]

It ends by itself, with its weights. Its bits per base over time, its speed and the tail of what it
said are saved while it runs. Without a genome it trains on the toy one.
"""

import csv
import hashlib
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

from machine import DEVICE, read_arguments, save

SMALL = "--preset caduceus-ps-470k --batch-size 64 --seq-len 1024 --precision bf16"
LARGE = "--preset caduceus-ps-470k --batch-size 256 --seq-len 1024 --precision bf16 --workers 4"
TINY = "--preset caduceus-ps-tiny --batch-size 2 --seq-len 64"


def command(recipe: list[str], how: str, folder: Path) -> list[str]:
    """The command line of a run."""
    start = [sys.executable, "-m", "genodiff", "train", *recipe, *how.split()]
    return [*start, "--out", str(folder), "--device", DEVICE, "--seed", "1", "--offline"]


def digest_weights(folder: Path) -> str | None:
    """A digest of the weights that a run ended with."""
    path = folder / "model.safetensors"
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.exists() else None


def read_metrics(folder: Path) -> list[dict[str, str]]:
    """The rows of metrics.csv, of which the last may be in writing."""
    path = folder / "metrics.csv"
    rows = list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []
    return [row for row in rows if row.get("step") and None not in row.values()]


def thin(rows: list[dict[str, str]], most: int = 400) -> list[dict[str, str]]:
    """Every so manieth row, those with a validation, and the last."""
    every = max(1, len(rows) // most)
    return [r for i, r in enumerate(rows) if i % every == 0 or r.get("valid_bits") or r is rows[-1]]


def wait(process: subprocess.Popen[Any], seconds: float) -> int | None:
    """Its exit code; None, and it is ended, where it takes longer."""
    try:
        return process.wait(timeout=max(1.0, seconds))
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
        return None


def train_genome(arguments: Any, end: float) -> dict[str, Any]:
    """Minutes of training on a genome."""
    folder = arguments.folder / "genome"
    minutes = min(arguments.minutes, (end - time.monotonic() - 45) / 60)
    how = f"{LARGE} --max-minutes {minutes:.2f}"
    recipe = ["sacCer3", "--fasta", str(arguments.fasta)]
    if arguments.rehearse:
        how = f"{TINY} --max-steps {arguments.steps}"
    if arguments.rehearse or not (arguments.fasta and arguments.fasta.exists()):
        recipe = ["toy"]
    line = command(recipe, how, folder)
    found: dict[str, Any] = {"command": " ".join(line[1:]), "device": DEVICE}
    save(arguments.out, found)
    start, said = time.monotonic(), folder.with_suffix(".log")
    said.parent.mkdir(parents=True, exist_ok=True)
    with said.open("wb") as sink:
        process = subprocess.Popen(line, stdout=sink, stderr=subprocess.STDOUT)
        while process.poll() is None and time.monotonic() < end:
            time.sleep(1.0)
            found |= {"seconds": time.monotonic() - start, "metrics": thin(read_metrics(folder))}
            if int(found["seconds"]) % 5 == 0:
                save(arguments.out, found)
        found["code"] = wait(process, end - time.monotonic())
    text = said.read_text(errors="replace").replace("\r", "\n").splitlines()
    found["said"] = list(deque(text, 30))
    found |= {"seconds": time.monotonic() - start, "weights": digest_weights(folder)}
    rows = read_metrics(folder)
    found["metrics"] = thin(rows)
    if rows:
        found["tokens"] = int(float(rows[-1]["tokens"]))
        found["tokens_per_s"] = found["tokens"] / max(1e-9, float(rows[-1]["seconds"]))
    print("\n".join(found["said"][-8:]))
    return found


def main() -> None:
    arguments = read_arguments(
        __doc__, folder=Path, fasta=Path, steps=100, minutes=2.0, seconds=100.0
    )
    found = train_genome(arguments, time.monotonic() + arguments.seconds)
    save(arguments.out, found)
    print({k: v for k, v in found.items() if k not in ("metrics", "said")})
    sys.exit(found["code"] != 0)


if __name__ == "__main__":
    main()
