"""A real training run on a GPU, and its exact resumption: `genodiff train` whole, and the same run
stopped in the middle and begun again.

    python benchmarks/gpu/train.py --out FILE --folder FOLDER [--fasta GENOME] [--steps 600] [--dry]

Writes the bits per base over time, tokens per second, and whether the two runs' weights are the
same bytes.
"""

import argparse
import csv
import hashlib
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from machine import DEVICE, save


def command(folder: Path, arguments: argparse.Namespace) -> list[str]:
    recipe = ["sacCer3", "--fasta", str(arguments.fasta)] if arguments.fasta else ["toy"]
    size = [
        "--preset",
        "caduceus-ps-470k",
        "--batch-size",
        "64",
        "--seq-len",
        "1024",
        "--precision",
        "bf16",
    ]
    if arguments.dry:
        size = ["--preset", "caduceus-ps-tiny", "--batch-size", "2", "--seq-len", "64"]
    how = [
        "--max-steps",
        str(arguments.steps),
        "--out",
        str(folder),
        "--device",
        DEVICE,
        "--seed",
        "1",
        "--offline",
    ]
    return [sys.executable, "-m", "genodiff", "train", *recipe, *size, *how]


def weights(folder: Path) -> str:
    """A digest of the weights that a run ends with."""
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()[:16]


def last_step(folder: Path) -> int:
    """The last step that the metrics tell of, 0 before the first."""
    path = folder / "metrics.csv"
    rows = list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []
    return max((int(float(r["step"])) for r in rows if r.get("step")), default=0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--fasta", type=Path)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seconds", type=float, default=100)
    parser.add_argument("--dry", action="store_true")
    arguments = parser.parse_args()
    if arguments.fasta and not arguments.fasta.exists():
        arguments.fasta = None
    whole, parts = arguments.folder / "whole", arguments.folder / "parts"
    found: dict[str, Any] = {
        "command": " ".join(command(whole, arguments)[1:]),
        "steps": arguments.steps,
    }
    start = time.monotonic()
    save(arguments.out, found)
    try:
        done = subprocess.run(command(whole, arguments), timeout=arguments.seconds)
    except subprocess.TimeoutExpired:
        save(
            arguments.out,
            found
            | {"code": None, "seconds": time.monotonic() - start, "after_step": last_step(whole)},
        )
        sys.exit(
            f"not done within {arguments.seconds:.0f} s: at step {last_step(whole)} of "
            f"{arguments.steps}"
        )
    found |= {"code": done.returncode, "seconds": time.monotonic() - start}
    save(arguments.out, found)
    if done.returncode:
        sys.exit(done.returncode)
    found |= {
        "weights": weights(whole),
        "metrics": list(csv.DictReader((whole / "metrics.csv").read_text().splitlines())),
    }
    save(arguments.out, found)
    process = subprocess.Popen(command(parts, arguments))
    while process.poll() is None and last_step(parts) < arguments.steps // 3:
        time.sleep(0.05)
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    found["stopped"] = {"code": process.wait(), "after_step": last_step(parts)}
    save(arguments.out, found)
    again = subprocess.run(command(parts, arguments), timeout=arguments.seconds)
    found |= {"resumed_code": again.returncode, "resumed_weights": weights(parts)}
    found["same_bits"] = found["weights"] == found["resumed_weights"]
    save(arguments.out, found)
    print({k: found[k] for k in ("seconds", "weights", "resumed_weights", "same_bits", "stopped")})


if __name__ == "__main__":
    main()
