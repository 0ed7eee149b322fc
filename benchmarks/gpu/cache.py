"""Triton's compiled kernels as an archive: to bring them back, and to take them along again.

    python benchmarks/gpu/cache.py pack FOLDER ARCHIVE
    python benchmarks/gpu/cache.py unpack FOLDER ARCHIVE

Compiled kernels are found by a digest of their source, so one that does not fit is not used.
"""

import os
import sys
import tarfile
from pathlib import Path

LARGEST = 15 << 20  # bytes of a file that comes back


def main() -> None:
    what, folder, archive = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if what == "unpack":
        if not archive.exists():
            print(f"no {archive.name}: kernels are compiled anew")
            return
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as source:
            source.extraction_filter = getattr(tarfile, "data_filter", None)  # 3.11.4 on
            source.extractall(folder)
    else:
        folder.mkdir(parents=True, exist_ok=True)  # the interpreter compiles nothing
        scratch = archive.with_name(archive.name + ".part")
        with tarfile.open(scratch, "w:gz") as target:
            target.add(folder, arcname=".")
        size = scratch.stat().st_size
        if size > LARGEST:
            print(f"{size} bytes are too many to bring back")
            scratch.unlink()
            return
        os.replace(scratch, archive)
    print(what, sum(1 for path in folder.rglob("*") if path.is_file()), "files")


if __name__ == "__main__":
    main()
