"""Genomes as large as mammals, made up: an alignment beside our own search, and who is found.

    python benchmarks/relatives/mammal_aligned.py --mb 3100 -o mammal_aligned.json

The target is that of `mammal.py`: contigs of 20 Mb of random bases, a tenth of which are copies of
2,000 elements. The related genome is the target with 5 to 40 % of the bases changed, drawn for each
10 kb, and a base less about every `GAP` bases, so its alignment is known. Both are written contig
by contig. Asked are windows of the target with the alignment (located, laid, summed), and windows
of the related genome by our own search in the target, by identity. Times are of one thread.
"""

import argparse
import json
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from likelihood.memory_scale import CONTIG, ELEMENTS, LENGTH, make_genome, peak_gb  # noqa: E402

from genodiff.memory.aligned import AlignedBlocks, AlignedMemory, Locator  # noqa: E402
from genodiff.memory.alignment import align_windows  # noqa: E402
from genodiff.memory.memory import Memory, open_memory, write_memory  # noqa: E402
from genodiff.memory.numbers import RELATIVE_SEARCH, RelativeNumbers  # noqa: E402
from genodiff.memory.search import Effort  # noqa: E402
from genodiff.memory.text import Codes, TextWriter  # noqa: E402
from genodiff.runs.folder import find_git_revision  # noqa: E402

GAP, PIECE, BATCH = 400, 10_000, 32
RATES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)


class Asked(NamedTuple):
    """A window of the target from `place` on, and the homologous one of the related genome."""

    rate: float
    place: int
    window: Codes
    related: Codes


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=int, default=3100)
    parser.add_argument("--windows", type=int, default=256)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(1)
    lengths = rng.integers(300, 6001, ELEMENTS)
    elements = [rng.integers(0, 4, n, dtype=np.uint8) for n in lengths]
    target, related = TextWriter(), TextWriter()
    blocks, asked, at, there = [], [], 0, 0
    spent = 0.0
    for number, first in enumerate(range(0, given.mb, CONTIG // 1_000_000)):
        (codes,) = make_genome(min(CONTIG // 1_000_000, given.mb - first), elements, rng)
        rates = rng.choice(RATES, len(codes) // PIECE + 1)
        changed = rng.random(len(codes)) < np.repeat(rates, PIECE)[: len(codes)]
        other = np.where(changed, (codes + rng.integers(1, 4, len(codes), np.uint8)) % 4, codes)
        gaps = np.flatnonzero(rng.random(len(codes)) < 1 / GAP)
        starts, ends = np.append(0, gaps + 1), np.append(gaps, len(codes))
        rows = np.stack([starts + at, starts - np.arange(len(starts)) + there, ends - starts], 1)
        blocks.append(rows[rows[:, 2] > 0])
        each = 2 + given.windows * CONTIG // (given.mb * 10**6)
        for piece in rng.integers(0, len(codes) // PIECE - 1, each).tolist():
            start, end = piece * PIECE + 4000, piece * PIECE + 4000 + 2 * LENGTH
            gone = gaps[(gaps >= start) & (gaps < end)] - start
            kept = np.delete(other[start:end], gone)[:LENGTH]
            asked.append(
                Asked(float(rates[piece]), at + start, codes[start : start + LENGTH], kept)
            )
        begun = time.process_time()
        for writer, some in ((target, codes), (related, np.delete(other, gaps))):
            writer.begin(f"contig{number}")
            writer.add(some.astype(np.uint8))
        spent += time.process_time() - begun
        at += len(codes) + 1
        there += len(codes) - len(gaps) + 1
    row = {"mb": given.mb, "commit": find_git_revision(), "text_cpu_s": round(spent, 1)}
    with tempfile.TemporaryDirectory(dir=given.output.parent) as folder:
        home = Path(folder)
        write_memory(home / "related", Memory.build_sampled(related.finish(), searched=False), {})
        del related
        begun = time.process_time()
        built = Memory.build_sampled(target.finish())
        row |= {
            "index_cpu_s": round(time.process_time() - begun, 1), "peak_gb": round(peak_gb(), 2),
        }  # fmt: skip
        write_memory(home / "target", built, {})
        del built, target
        rows = np.concatenate(blocks)
        rows = np.concatenate([rows, np.zeros((len(rows), 1), np.int64)], 1)
        np.save(home / "blocks.npy", np.stack(AlignedBlocks.sort(rows)))
        print(json.dumps(row), flush=True)
        with ProcessPoolExecutor(1, get_context("spawn")) as fresh:  # its memory is its own
            row |= fresh.submit(ask, home, asked).result()
    print(json.dumps(row), flush=True)
    given.output.write_text(json.dumps(row, indent=1) + "\n")


def ask(home: Path, asked: list[Asked]) -> dict[str, Any]:
    """What windows cost with the alignment and by a search, and who is found."""
    torch.set_num_threads(1)
    memory, related = open_memory(home / "target"), open_memory(home / "related")
    blocks = AlignedBlocks(*np.load(home / "blocks.npy", mmap_mode="r"))
    laid = AlignedMemory(related.text, None, related.chain, blocks=blocks, locator=Locator(memory))
    row: dict[str, Any] = {"blocks": len(blocks.target)}
    numbers = RelativeNumbers()
    alike = np.ones(len(numbers.share), bool)
    windows = np.stack([one.window for one in asked])
    laid.search(windows[:2])
    spent, over = np.zeros(2), []
    for first in range(0, len(windows), BATCH):
        marks = [time.process_time()]
        seen, found = laid.search(windows[first : first + BATCH])
        marks.append(time.process_time())
        over.append(align_windows(related.text, seen, found, numbers, alike)[0][0])
        spent += np.diff([*marks, time.process_time()])
    share = float((np.concatenate(over).sum(-1) > 0.5).mean())
    ms = (1e3 * spent / len(windows)).round(2).tolist()
    row["alignment"] = {"locate_ms": ms[0], "sum_ms": ms[1], "laid": share, "peak_gb": peak_gb()}
    searched = replace(memory, numbers=RELATIVE_SEARCH).with_effort(Effort(most=64))
    kept = np.stack([one.related for one in asked])
    searched.search(kept[:2])
    begun = time.process_time()
    found = searched.search(kept)[1]
    row["search_ms"] = round(1e3 * (time.process_time() - begun) / len(kept), 2)
    recall: dict[float, list[bool]] = {}
    for one, (diagonals, _) in zip(asked, found, strict=True):
        near = abs(diagonals - one.place) < LENGTH // 8
        recall.setdefault(one.rate, []).append(bool(near.any()))
    row["found_by_identity"] = {
        str(round(1 - rate, 2)): [round(float(np.mean(some)), 3), len(some)]
        for rate, some in sorted(recall.items())
    }
    return row | {"peak_gb_asked": round(peak_gb(), 2)}


if __name__ == "__main__":
    main()
