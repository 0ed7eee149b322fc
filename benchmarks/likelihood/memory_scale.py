"""A memory of a large genome, made up: time and memory to build it, and to ask it.

    python benchmarks/likelihood/memory_scale.py --mb 300 -o scale.json

The genome has contigs of 20 Mb of random bases, a tenth of which are copies of 2,000 elements of
300 to 6,000 bases that differ from them in 0 to 20 % of the bases, on both strands. Asked are
windows of 1,024 bases that are not of it: half hold an element, changed once more, and half are
random; each masked at three rates. Times are of one thread (`process_time`). What 3 Gb would take
is computed from the sizes of its parts, not measured. With --k 12 a word of 300 Mb has 18 places by
chance; with the 14 of 3 Gb it has 12, so the search there has as much to do as here at most.
"""

import argparse
import json
import platform
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from genodiff.kernels.library import instruction_set
from genodiff.memory.memory import FILES, Memory, open_memory, write_memory
from genodiff.memory.search import Effort
from genodiff.memory.tables import choose_k
from genodiff.memory.text import NONE, Codes
from genodiff.runs.folder import find_git_revision

CONTIG = 20_000_000
ELEMENTS = 2000
SHARE = 0.1
LENGTH = 1024
RATES = (0.1, 0.5, 0.9)
LARGE = 3_100_000_000


def change(codes: Codes, rate: float, rng: np.random.Generator) -> Codes:
    """A copy in which this share of the bases is another one; of the other strand every second."""
    out = codes.copy()
    at = rng.random(len(out)) < rate
    out[at] = (out[at] + rng.integers(1, 4, int(at.sum()))) % 4
    return 3 - out[::-1] if rng.random() < 0.5 else out


def make_genome(mb: int, elements: list[Codes], rng: np.random.Generator) -> list[Codes]:
    """The contigs."""
    contigs = []
    for first in range(0, mb * 1_000_000, CONTIG):
        codes = rng.integers(0, 4, min(CONTIG, mb * 1_000_000 - first), dtype=np.uint8)
        left = int(SHARE * len(codes))
        while left > 0:
            one = change(elements[rng.integers(len(elements))], rng.uniform(0, 0.2), rng)
            place = int(rng.integers(len(codes) - len(one)))
            codes[place : place + len(one)] = one
            left -= len(one)
        contigs.append(codes)
    return contigs


def make_windows(n: int, elements: list[Codes], rng: np.random.Generator) -> Codes:
    """(n, LENGTH): the even ones hold an element, as far as it fits."""
    windows = rng.integers(0, 4, (n, LENGTH), dtype=np.uint8)
    for row in windows[::2]:
        one = change(elements[rng.integers(len(elements))], rng.uniform(0, 0.2), rng)[:800]
        place = int(rng.integers(LENGTH - len(one)))
        row[place : place + len(one)] = one
    return windows


def ask(memory: Memory, windows: Codes, hidden: NDArray[np.bool_]) -> dict[str, Any]:
    """Milliseconds a window and core, and the bits that a hidden base costs, elements apart.

    A base costs 2 bits to a denoiser that knows nothing.
    """
    masked = np.where(hidden, NONE, windows).astype(np.uint8)
    memory.recall(masked[:1])  # maps what is read
    begun = time.process_time()
    found = memory.recall(masked)
    ms = 1e3 * (time.process_time() - begun) / len(masked)
    chances = found.background[..., None] / 4 + found.copy
    of_truth = np.take_along_axis(chances, windows[..., None].astype(np.int64), -1)[..., 0]
    bits = [
        float((-np.log2(of_truth[part]) * hidden[part]).sum() / hidden[part].sum())
        for part in (slice(0, None, 2), slice(1, None, 2))
    ]
    return {"ms": ms, "bits_elements": bits[0], "bits_random": bits[1]}


def peak_gb() -> float:
    """The most memory that this process held; `ru_maxrss` begins with its parent's."""
    own = Path("/proc/self/status")
    if own.exists():
        return int(own.read_text().split("VmHWM:")[1].split()[0]) * 1024 / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mb", type=int, default=300)
    parser.add_argument("--windows", type=int, default=64)
    parser.add_argument("--exhaustive", type=int, default=8, help="windows asked exhaustively")
    parser.add_argument("--k", type=int, help="of the table (default: by the number of bases)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, required=True)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(asked.seed)
    lengths = rng.integers(300, 6001, ELEMENTS)
    elements = [rng.integers(0, 4, n, dtype=np.uint8) for n in lengths]
    contigs = make_genome(asked.mb, elements, rng)
    before, begun, at = peak_gb(), time.monotonic(), time.process_time()
    stretches = ((f"contig{i}", 0, codes) for i, codes in enumerate(contigs))
    built = Memory.build(stretches, k=asked.k)
    build = {
        "cpu_s": time.process_time() - at, "wall_s": time.monotonic() - begun,
        "peak_gb": peak_gb(), "peak_gb_before": before,
    }  # fmt: skip
    print(json.dumps(build), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        place, at = Path(folder) / "memory", time.process_time()
        write_memory(place, built, {"mb": asked.mb, "seed": asked.seed})
        build["write_cpu_s"] = time.process_time() - at
        sizes = {name: (place / f"{name}.npy").stat().st_size for name in FILES[0]}
        at = time.process_time()
        memory = open_memory(place)
        build["open_cpu_s"] = time.process_time() - at
        del built
        windows = make_windows(asked.windows, elements, rng)
        rows = []
        for rate in RATES:
            hidden = rng.random(windows.shape) < rate
            rows.append({"rate": rate, **ask(memory, windows, hidden)})
            if asked.exhaustive:
                few = slice(0, asked.exhaustive)
                every = memory.with_effort(Effort(scored=None))
                rows[-1]["few"] = ask(memory, windows[few], hidden[few])
                rows[-1]["exhaustive"] = ask(every, windows[few], hidden[few])
            print(json.dumps(rows[-1]), flush=True)
        bases, k = memory.text.n_bases, memory.table.k
    told = {
        "mb": asked.mb, "seed": asked.seed, "bases": bases, "k": k, "bytes": sizes,
        "build": build, "asked": rows, "commit": find_git_revision(),
        "isa": instruction_set(), "machine": platform.machine(),
        "computed": {
            "bases": LARGE, "k": choose_k(LARGE), "planes": 3 * LARGE // 8,
            "start": 4 * (4 ** choose_k(LARGE) + 1), "at": 4 * LARGE,
        },
    }  # fmt: skip
    asked.output.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
