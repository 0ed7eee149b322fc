"""A list of genomes: one clear line for each line that is wrong. Drawing from them: shares by
weight and temperature, each window in its turn, and the same order in every layout.
"""

import logging
from pathlib import Path

import numpy as np
import pytest
from genomes import write_family, write_list

from genodiff.data.genomes.collection import build_collection
from genodiff.data.genomes.listing import read_genome_list
from genodiff.data.genomes.mixing import GenomeMix, find_shares, round_systematically
from genodiff.data.genomes.store import GenomesWindows, open_genomes
from genodiff.data.loader import TrainBatches
from genodiff.data.recipe import Recipe
from genodiff.errors import DataError


@pytest.fixture
def folder(tmp_path):
    for name in ("a.fa", "b.fa.gz", "s.bed"):
        (tmp_path / name).write_text(">x\nACGT\n")
    return tmp_path


def test_columns_in_any_order_comments_and_defaults(folder):
    (folder / "list.tsv").write_text(
        "# ours\nweight\tpath\tspecies\tsplit\n\n2.5\tb.fa.gz\tHomo sapiens\ts.bed\n.\ta.fa\n"
    )
    a, b = read_genome_list(folder / "list.tsv").rows
    assert (a.name, a.weight, a.species, a.split, a.line) == ("a", 1.0, "", "cluster", 5)
    assert (b.name, b.weight, b.species) == ("b", 2.5, "Homo_sapiens")
    assert b.path == str(folder / "b.fa.gz")
    assert b.split == str(folder / "s.bed")


def test_the_order_of_lines_decides_nothing(folder):
    rows = [{"path": "a.fa", "name": "z"}, {"path": "b.fa.gz", "name": "c"}]
    one = read_genome_list(write_list(folder / "l.tsv", rows)).rows
    two = read_genome_list(write_list(folder / "l.tsv", rows[::-1])).rows
    assert [r.name for r in one] == [r.name for r in two] == ["c", "z"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"path": "no.fa"}, "no.fa is no file"),
        ({"path": "."}, "has no path"),
        ({"path": "http://x.org/a.fa"}, "http:// is not fetched"),
        ({"path": "a.fa", "name": "a/b"}, "the name 'a/b' is no label"),
        ({"path": "a.fa", "weight": "much"}, "the weight 'much'"),
        ({"path": "a.fa", "weight": "-1"}, "the weight '-1'"),
        ({"path": "a.fa", "weight": "inf"}, "the weight 'inf'"),
        ({"path": "a.fa", "split": "tset"}, "did you mean 'test'?"),
        ({"path": "a.fa", "split": "no.bed"}, "no.bed is no file"),
        ({"path": "a.fa", "sha256": "12"}, "not 64 hexadecimal digits"),
        ({"path": "a.fa", "species": "a,b"}, "is no label"),
        ({"path": "a.fa", "name": "GOOD"}, "stands in line 2 too"),
    ],
)
def test_each_bad_line_is_told_with_its_number(folder, row, said):
    full = {"path": "", "name": "", "weight": "", "species": "", "split": "", "sha256": ""}
    path = write_list(folder / "l.tsv", [full | {"path": "b.fa.gz", "name": "good"}, full | row])
    with pytest.raises(DataError) as raised:
        read_genome_list(path)
    assert said in str(raised.value)
    assert raised.value.line == 3
    assert raised.value.fix


@pytest.mark.parametrize("mark", [",", ";"])
def test_a_list_with_another_separator_is_told_which(folder, mark):
    (folder / "l.tsv").write_text(f"path{mark}species\na.fa{mark}A\n")
    with pytest.raises(DataError, match=f"line 1: .*not tabs; tr '{mark}'"):
        read_genome_list(folder / "l.tsv")


def test_all_bad_lines_are_told_at_once(folder, caplog):
    path = write_list(folder / "l.tsv", [{"path": "x.fa"}, {"path": "a.fa"}, {"path": "y.fa"}])
    with caplog.at_level(logging.ERROR, "genodiff"), pytest.raises(DataError) as raised:
        read_genome_list(path)
    assert "line 2: x.fa is no file" in caplog.text
    assert raised.value.line == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no genome"),
        ("path\n", "names no genome"),
        ("a.fa\n", "no column 'a.fa'"),
        ("name\tweight\na\t1\n", "no column 'path'"),
        ("path\tpath\na.fa\ta.fa\n", "is given twice"),
        ("path\tnmae\na.fa\tx\n", "did you mean 'name'?"),
        ("path\na.fa\t1\n", "has 2 fields"),
    ],
)
def test_a_table_without_its_columns_is_refused(folder, text, said):
    (folder / "l.tsv").write_text(text)
    with pytest.raises(DataError, match=r"line|names") as raised:
        read_genome_list(folder / "l.tsv")
    assert said in str(raised.value)


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
