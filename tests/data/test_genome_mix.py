"""Drawing from many genomes: shares by weight and temperature, each window in its turn, and the
same order in every layout."""

from pathlib import Path

import numpy as np
import pytest
from many_genomes import write_family, write_list

from genodiff.data.genomes.collection import build_collection
from genodiff.data.genomes.listing import read_genome_list
from genodiff.data.genomes.mixing import GenomeMix, find_shares, round_systematically
from genodiff.data.genomes.store import GenomesWindows, open_genomes
from genodiff.data.loader import TrainBatches
from genodiff.data.recipe import Recipe
from genodiff.errors import DataError


def cut(folder: Path, weights: list[float]) -> GenomesWindows:
    rows = []
    for i, weight in enumerate(weights):
        write_family(folder / f"d{i}", n=1, bases=6000 * (i + 1))
        rows.append({"path": f"d{i}/g00.fa", "name": f"n{i}", "split": "train"})
        rows[-1]["weight"] = str(weight)
    path = write_list(folder / "l.tsv", rows)
    build_collection(read_genome_list(path), folder / "out")
    return GenomesWindows(open_genomes(folder / "out"), Recipe(name="own"), "train", 100)


def test_shares_are_weight_times_size_to_one_over_the_temperature():
    sizes, weights = np.array([100, 400, 0, 1600]), np.array([1.0, 1.0, 5.0, 2.0])
    assert find_shares(weights, sizes, 1.0) == pytest.approx(np.array([100, 400, 0, 3200]) / 3700)
    assert find_shares(weights, sizes, 2.0) == pytest.approx(np.array([10, 20, 0, 80]) / 110)
    assert find_shares(weights, sizes, 1e6) == pytest.approx(np.array([1, 1, 0, 2]) / 4, abs=1e-4)
    assert find_shares(np.full(2, 1e-300), np.array([1, 3]), 0.01)[1] == pytest.approx(1.0)


def test_systematic_rounding_keeps_sum_and_mean():
    shares = np.array([0.0, 0.3, 0.001, 0.699, 0.0])
    counts = np.array([round_systematically(shares, 77, u) for u in (np.arange(2000) + 0.5) / 2000])
    assert (counts.sum(1) == 77).all()
    assert (np.abs(counts - 77 * shares) < 1).all()
    assert counts.mean(0) == pytest.approx(77 * shares, abs=2e-3)


def test_equal_weights_show_each_window_once_a_block(tmp_path):
    windows = cut(tmp_path, [1.0, 1.0, 1.0])
    mix = GenomeMix(windows, seed=1)
    n = windows.per_epoch
    assert mix.size == n
    for block in range(3):
        starts, lengths = mix.place(np.arange(block * n, (block + 1) * n))
        assert len(np.unique(starts)) >= n - 3  # of phases with one window more, one is left out
        assert (lengths == 100).all()


def test_weights_and_temperature_are_obeyed_and_windows_come_in_turn(tmp_path):
    windows = cut(tmp_path, [0.0, 1.0, 6.0])
    mix = GenomeMix(windows, seed=2, temperature=2.0)
    size = np.diff(windows.genome_ranks(0))
    assert size.tolist() == [60, 120, 180]
    starts, _ = mix.place(np.arange(20 * mix.size))
    genome = windows.store.flat.find_genome(starts)
    found = np.bincount(genome, minlength=3) / len(genome)
    expected = np.array([0, 120**0.5, 6 * 180**0.5])
    assert found == pytest.approx(expected / expected.sum(), abs=0.5 / mix.size)
    one = starts[: mix.size][genome[: mix.size] == 2]
    times = np.unique(one, return_counts=True)[1]
    assert times.max() - times.min() <= 1  # drawn without replacement
    every = np.unique(starts[genome == 2] // 100)
    assert len(every) == 180


def test_the_order_is_the_same_in_every_layout_and_from_everywhere(tmp_path):
    windows = cut(tmp_path, [1.0, 1.0, 3.0])

    def seen(first: int, ranks: int, accumulate: int) -> list[int]:
        found: dict[int, bytes] = {}
        for rank in range(ranks):
            mix = GenomeMix(windows, 7, 1.5)
            batches = TrainBatches(windows, 7, 8, accumulate, rank, ranks, order=mix)
            for k in range(first * accumulate, 60 * accumulate):
                batch = batches.batch(k)
                for index, row in zip(batch.index.tolist(), batch.x0, strict=True):
                    found[index] = row.numpy().tobytes()
        return [hash(found[i]) for i in sorted(found)]

    whole = seen(0, 1, 1)
    assert len(whole) == 480
    assert seen(0, 2, 1) == seen(0, 1, 4) == seen(0, 4, 2) == whole
    assert seen(33, 2, 1) == whole[33 * 8 :]


def test_no_weight_above_zero_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"no genome .* has a weight above 0"):
        GenomeMix(cut(tmp_path, [0.0, 0.0]), seed=1)
