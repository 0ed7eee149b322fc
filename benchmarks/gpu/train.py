"""A real training run on a GPU, and the exact resumption of one.

    python benchmarks/gpu/train.py resume --out FILE --folder FOLDER [--steps 100] [--rehearse]
    python benchmarks/gpu/train.py genome --out FILE --folder FOLDER --fasta GENOME [--minutes 5]

`resume` trains on the toy genome, then trains the same again, killed in the middle and begun once
more, and compares the weights' bytes; then again with its steps as CUDA graphs. `genome` trains on
yeast for some minutes; it ends by itself, with its weights. Its bits per base over time, its speed
and the tail of what it said are saved while it runs; where it fails, the same is tried on the toy
genome.
"""

import csv
import hashlib
import os
import signal
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


def find_last_step(folder: Path) -> int:
    rows = read_metrics(folder)
    return int(float(rows[-1]["step"])) if rows else 0


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


def resume(arguments: Any, end: float) -> dict[str, Any]:
    """A whole run, and the same in two parts."""
    whole, parts = arguments.folder / "whole", arguments.folder / "parts"
    how = f"{TINY if arguments.rehearse else SMALL} --max-steps {arguments.steps}"
    found: dict[str, Any] = {"command": " ".join(command(["toy"], how, whole)[1:])}
    found["steps"] = arguments.steps
    start = time.monotonic()
    save(arguments.out, found)
    found["code"] = wait(subprocess.Popen(command(["toy"], how, whole)), end - time.monotonic())
    found |= {"seconds": time.monotonic() - start, "weights": digest_weights(whole)}
    found["metrics"] = thin(read_metrics(whole))
    save(arguments.out, found)
    process = subprocess.Popen(command(["toy"], how, parts))
    while process.poll() is None and find_last_step(parts) < arguments.steps // 3:
        if time.monotonic() > end:
            break
        time.sleep(0.02)
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    found["stopped"] = {"code": wait(process, 30), "after_step": find_last_step(parts)}
    save(arguments.out, found)
    again = subprocess.Popen(command(["toy"], how, parts))
    found["resumed_code"] = wait(again, end - time.monotonic())
    found["resumed_weights"] = digest_weights(parts)
    found["same_bits"] = found["weights"] is not None and (
        found["weights"] == found["resumed_weights"]
    )
    save(arguments.out, found)
    found["graphs"] = train_with_graphs(how, arguments.folder / "graphs", end, found["weights"])
    return found


def train_with_graphs(how: str, folder: Path, end: float, weights: str | None) -> dict[str, Any]:
    """The same run with its steps played back as CUDA graphs: same bits, how fast, what it said."""
    start, said = time.monotonic(), folder.with_suffix(".log")
    environment = os.environ | {"GENODIFF_CUDA_GRAPH": "auto"}
    with said.open("wb") as sink:
        line = command(["toy"], how, folder)
        process = subprocess.Popen(line, stdout=sink, stderr=subprocess.STDOUT, env=environment)
        code = wait(process, end - time.monotonic())
    text = said.read_text(errors="replace").replace("\r", "\n").splitlines()
    return {
        "code": code,
        "seconds": time.monotonic() - start,
        "same_bits": weights is not None and digest_weights(folder) == weights,
        "said": [line for line in text if "CUDA graph" in line],
        "metrics": thin(read_metrics(folder)),
    }


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
    which = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else ""
    if which not in ("resume", "genome"):
        sys.exit("say what: resume, or genome")
    arguments = read_arguments(
        __doc__, folder=Path, fasta=Path, steps=100, minutes=5.0, seconds=100.0
    )
    end = time.monotonic() + arguments.seconds
    found = (resume if which == "resume" else train_genome)(arguments, end)
    save(arguments.out, found)
    print({k: v for k, v in found.items() if k not in ("metrics", "said")})
    well = found["same_bits"] if which == "resume" else found["code"] == 0
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
