"""A relative as large as a mammal, made up: bytes a base, time and memory to build, ms a window.

    python benchmarks/relatives/mammal.py --mb 3000 -o mammal.json

The genome is that of `likelihood/memory_scale.py`: contigs of 20 Mb of random bases, a tenth of
which are copies of 2,000 elements, 0 to 20 % diverged. So are the windows. Contigs are made and
written one by one, so the peak is the build's. Times are of one thread.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from likelihood.memory_scale import (  # noqa: E402
    CONTIG,
    ELEMENTS,
    RATES,
    ask,
    make_genome,
    make_windows,
    peak_gb,
)

from genodiff.kernels.library import instruction_set  # noqa: E402
from genodiff.memory.memory import (  # noqa: E402
    Memory,
    open_memory,
    write_memory,
)
from genodiff.memory.text import MemoryText, TextWriter  # noqa: E402
from genodiff.runs.folder import find_git_revision  # noqa: E402


def make_text(mb: int, elements: list[np.ndarray], rng: np.random.Generator) -> MemoryText:
    """The text, contig by contig."""
    writer = TextWriter()
    step = CONTIG // 1_000_000
    for first in range(0, mb, step):
        writer.begin(f"contig{first // step}")
        (codes,) = make_genome(min(step, mb - first), elements, rng)
        writer.add(codes)
    return writer.finish()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mb", type=int, default=300)
    parser.add_argument("--windows", type=int, default=32)
    parser.add_argument("--folder", type=Path, help="where the files are written for a while")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(1)
    elements = [rng.integers(0, 4, n, dtype=np.uint8) for n in rng.integers(300, 6001, ELEMENTS)]
    at = time.process_time()
    text = make_text(given.mb, elements, rng)
    row = {
        "mb": given.mb, "commit": find_git_revision(), "isa": instruction_set(),
        "text_cpu_s": time.process_time() - at, "text_peak_gb": peak_gb(),
    }  # fmt: skip
    at = time.process_time()
    built = Memory.build_sampled(text)
    row |= {"index_cpu_s": time.process_time() - at, "peak_gb": peak_gb(), "k": built.table.k}
    print(json.dumps(row), flush=True)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        at = time.process_time()
        write_memory(Path(folder) / "memory", built, {"mb": given.mb})
        row["write_cpu_s"] = time.process_time() - at
        sizes = {p.stem: p.stat().st_size for p in (Path(folder) / "memory").glob("*.npy")}
        index = sum(n for name, n in sizes.items() if name != "planes")
        row |= {"bytes": sizes, "index_bytes_a_base": index / text.n_bases}
        del built, text
        memory = open_memory(Path(folder) / "memory")
        windows = make_windows(given.windows, elements, rng)
        row["asked"] = [
            {"rate": rate, **ask(memory, windows, rng.random(windows.shape) < rate)}
            for rate in RATES
        ]
    print(json.dumps(row), flush=True)
    given.output.write_text(json.dumps(row, indent=1) + "\n")


if __name__ == "__main__":
    main()
