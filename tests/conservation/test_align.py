"""`genodiff align`: which base of a related genome lies over each base, as PAF."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

import genodiff
from genodiff.conservation.align_job import RUN, find_runs, format_paf, join_runs
from genodiff.errors import Interrupted, UsageError
from genodiff.io.alignments import read_alignments
from genodiff.memory.text import join_stretches
from tests.conservation.constraint_world import LENGTH, World, stop_at, write_world
from tests.tiny_run import write_fasta

GONE, NEW = (4000, 4005), (7000, "ACGTTGA")
"""Bases of the genome that the related genome lacks, and what it has more before a base."""
TURN = str.maketrans("ACGT", "TGCA")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The made-up world; of the second relative, the first half is on the other strand."""
    made = write_world(tmp_path_factory.mktemp("world"))
    letters = made.relatives[0].read_text().split()[1]
    letters = letters[: NEW[0]] + NEW[1] + letters[NEW[0] :]
    letters = letters[: GONE[0]] + letters[GONE[1] :]
    rows = {"a": letters[:6000].translate(TURN)[::-1], "b": letters[6000:]}
    return World(
        made.genome, (made.relatives[0], write_fasta(made.genome.parent / "turned.fa", rows))
    )


@pytest.fixture(scope="module")
def whole(world, tmp_path_factory):
    return align(world, tmp_path_factory.mktemp("out") / "whole.paf")


def align(world: World, out: Path, **more: Any) -> Path:
    told = genodiff.align(world.genome, relatives=world.relatives[1:], out=out, **more)
    assert told["shard"] or told["aligned"] > 0.9 * LENGTH
    return out


def list_pairs(path: Path) -> dict[int, tuple[str, int]]:
    """Over each base of chr1: the contig and the forward base of the related genome."""
    over: dict[int, tuple[str, int]] = {}
    for pair in read_alignments(path):
        assert pair.top.name == "chr1"
        for top, low, n in pair.blocks.tolist():
            for i in range(n):
                at = low + i
                over[top + i] = pair.low.name, pair.low.size - 1 - at if pair.low.strand else at
    return over


@pytest.mark.slow
def test_each_base_lies_under_its_own(whole, world):
    shift = len(NEW[1])
    truth = {at: ("b", at - 6005 + shift * (at >= NEW[0])) for at in range(6005, LENGTH)}
    truth |= {at: ("a", 5999 - at) for at in range(GONE[0])}
    truth |= {at: ("a", 5999 - at + 5) for at in range(GONE[1], 6005)}
    over = list_pairs(whole)
    right = sum(over.get(at) == one for at, one in truth.items())
    assert right > 0.97 * LENGTH
    assert sum(over[at] != truth.get(at) for at in over) < 0.01 * LENGTH
    fields = [line.split("\t") for line in whole.read_text().splitlines()]
    assert len(fields) == 2  # an inversion breaks the record, a few bases do not
    assert sum(int(one[9]) for one in fields) / sum(int(one[10]) for one in fields) > 0.85


@pytest.mark.slow
def test_shards_threads_and_resuming_keep_the_bytes(world, whole, tmp_path, monkeypatch, threads):
    parts = [tmp_path / f"{i}.npy" for i in (1, 2, 3)]
    for i, part in enumerate(parts, 1):
        align(world, part, shard=f"{i}/3")
    genodiff.merge(parts[::-1], out=tmp_path / "merged.paf")
    assert (tmp_path / "merged.paf").read_bytes() == whole.read_bytes()
    torch.set_num_threads(threads[-1])
    assert align(world, tmp_path / "t.paf").read_bytes() == whole.read_bytes()
    stop_at(monkeypatch, lambda kept: kept == 5)
    with pytest.raises(Interrupted):
        align(world, tmp_path / "again.paf")
    assert align(world, tmp_path / "again.paf").read_bytes() == whole.read_bytes()


@pytest.mark.slow
def test_constraint_with_the_alignment_is_that_of_a_search(world, whole, tmp_path):
    near, far = world.relatives
    frames = []
    for name, other in (("search", far), ("given", f"{far}:{whole}")):
        given = {"relatives": [near, other], "formats": ["parquet"]}
        genodiff.constraint(world.genome, out=tmp_path / name, **given)
        frames.append(pl.read_parquet(tmp_path / name / "tracks.parquet"))
    for name in ("rs", "conserved"):
        first, second = (x.filter(pl.col("contig") == "chr1")[name].to_numpy() for x in frames)
        both = ~np.isnan(first) & ~np.isnan(second)
        assert both.sum() > 0.95 * LENGTH
        assert np.corrcoef(first[both], second[both])[0, 1] > 0.99


def test_an_alignment_is_of_a_related_genome(world, tmp_path):
    with pytest.raises(UsageError, match="no related genome"):
        genodiff.align(world.genome, relatives=[], out=tmp_path / "a.paf")


def test_runs_end_where_places_do_not_follow_one_another():
    codes = np.array([0, 1, 2, 3, 0, 1, 2, 3], np.uint8)
    text = join_stretches([("c", 0, codes)])
    places = np.array([-1, 2, 4, 6, -1, 13, 11, 9, 4, 4])
    read = np.array([0, 1, 2, 0, 0, 1, 2, 0, 2, 2], np.uint8)
    runs = find_runs(places, read, text)
    assert runs[:, [0, 2, 3, 4]].tolist() == [
        [1, 1, 0, 3], [5, 6, 1, 3], [8, 2, 0, 1], [9, 2, 0, 1],
    ]  # fmt: skip
    assert runs[:, 5].tolist() == [2, 2, 1, 1]
    assert len(find_runs(np.full(3, -1), read[:3], text)) == 0
    assert len(find_runs(np.zeros(0, np.int64), read[:0], text)) == 0
    assert find_runs(np.array([0]), codes[:1], text).tolist() == [[0, 0, 0, 0, 1, 1]]


def test_records_do_not_depend_on_how_runs_are_cut():
    runs = np.array(
        [[0, 0, 10, 0, 5, 5], [5, 0, 18, 0, 4, 4], [12, 0, 22, 0, 3, 2],
         [20, 0, 90, 1, 5, 5], [26, 0, 84, 1, 2, 2], [300, 0, 80, 1, 2, 2]]
    )  # fmt: skip
    assert runs.shape[1] == len(RUN)
    every = [[("c", part) for part in np.split(runs, cut)] for cut in ([], [1], [2, 4], range(6))]
    lines = [
        [format_paf(one, {"c": 1000}, [("q", 100)]) for one in join_runs(parts)] for parts in every
    ]
    assert all(one == lines[0] for one in lines)
    steps = [line.strip().split("cg:Z:")[1] for line in lines[0]]
    assert steps == ["5M3I4M3D3M", "5M1I1D2M", "2M"]
    assert lines[0][1].split("\t")[2:5] == ["83", "91", "-"]
