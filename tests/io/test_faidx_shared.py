"""Many processes and threads that open and read one genome at once."""

import gzip
import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from genodiff.io.faidx import Genome
from tests.io.test_faidx import wrapped


def _fetch_all(
    path: str, expected: bytes, out: "multiprocessing.Queue[str]", start: "object"
) -> None:
    try:
        start.wait()  # type: ignore[attr-defined]
        with Genome(path) as genome:
            found = b"|".join(
                n.encode() + b"=" + genome.fetch(n, 0, size) for n, size in genome.contigs.items()
            )
        out.put("right" if found == expected else f"wrong: {found[:200]!r}")
    except BaseException as fault:
        out.put(f"error: {fault!r}")


def race(tmp_path: Path, rounds: int, processes: int) -> dict[str, int]:
    """How often `processes` that open one new FASTA in the same moment get it right, over `rounds`
    new files.
    """
    context = multiprocessing.get_context("fork")
    counts: dict[str, int] = {}
    path = tmp_path / "in.fa"
    for i in range(rounds):
        records = {
            b"c%d" % k: bytes(b"ACGT"[(i + k + j * j) % 4] for j in range(1000 + i + k))
            for k in range(3)
        }
        data = b"".join(wrapped(*one, 50 + i % 7) for one in records.items())
        (tmp_path / "new.fa").write_bytes(gzip.compress(data) if i % 4 == 3 else data)
        os.replace(tmp_path / "new.fa", path)
        expected = b"|".join(map(b"=".join, records.items()))
        out, start = context.Queue(), context.Barrier(processes)
        workers = [
            context.Process(target=_fetch_all, args=(str(path), expected, out, start))
            for _ in range(processes)
        ]
        for worker in workers:
            worker.start()
        for _ in workers:
            answer = out.get(timeout=60)
            counts[answer] = counts.get(answer, 0) + 1
        for worker in workers:
            worker.join(timeout=60)
    return counts


@pytest.mark.slow
def test_processes_that_open_one_new_file_at_once_all_get_it_right(tmp_path):
    assert race(tmp_path, 4, 3) == {"right": 12}


@pytest.mark.slow
@pytest.mark.long
def test_six_processes_that_open_one_new_file_at_once_get_it_right_two_hundred_times(tmp_path):
    assert race(tmp_path, 200, 6) == {"right": 1200}


def test_a_forked_child_and_its_parent_do_not_read_each_others_place(tmp_path):
    sequence = bytes(b"ACGT"[(j * j + j // 7) % 4] for j in range(200_000))
    (tmp_path / "in.fa").write_bytes(wrapped(b"a", sequence, 60))
    genome = Genome(tmp_path / "in.fa")
    context = multiprocessing.get_context("fork")

    def read(seed: int) -> None:
        starts = [(seed * 7919 + i * 104_729) % 190_000 for i in range(1000)]
        assert all(genome.fetch("a", s, s + 500) == sequence[s : s + 500] for s in starts)

    workers = [context.Process(target=read, args=(i,)) for i in range(3)]
    for worker in workers:
        worker.start()
    read(99)
    for worker in workers:
        worker.join(timeout=60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]


def test_threads_share_one_genome(tmp_path):
    sequence = bytes(b"ACGT"[(j * j + j // 7) % 4] for j in range(50_000))
    (tmp_path / "in.fa").write_bytes(wrapped(b"a", sequence, 60))
    genome, wrong = Genome(tmp_path / "in.fa"), []

    def read(seed: int) -> None:
        for i in range(500):
            start = (seed * 7919 + i * 104_729) % 49_000
            if genome.fetch("a", start, start + 500) != sequence[start : start + 500]:
                wrong.append(start)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(read, range(4)))
    assert wrong == []
