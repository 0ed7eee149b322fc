"""Copies what is worth keeping of a run: weights, figures, provenance, and no checkpoints.

python benchmarks/gpu/keep.py RUN FOLDER
"""

import shutil
import sys
from pathlib import Path

LARGEST = 8 << 20  # bytes of a file: all must fit in one archive of 16 MiB


def main() -> None:
    run, folder = map(Path, sys.argv[1:3])
    if not run.is_dir():
        sys.exit(f"nothing to keep: {run} is not there, so its training failed")
    folder.mkdir(parents=True, exist_ok=True)
    kept = []
    for path in sorted(run.iterdir()):
        if path.is_file() and path.stat().st_size <= LARGEST and path.name != ".lock":
            shutil.copy2(path, folder / path.name)
            kept.append(path.name)
    print("kept:", ", ".join(kept) or "nothing")


if __name__ == "__main__":
    main()
