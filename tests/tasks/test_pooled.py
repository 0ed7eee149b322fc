"""Pooled tables: what is one example, what its value is, and that what is alike stays together."""

import os
from pathlib import Path

import numpy as np
import pytest

from genodiff.alphabet import reverse_complement
from genodiff.errors import DataError, UsageError
from genodiff.tasks.examples import concatenate
from genodiff.tasks.layouts.pooled import read_pooled
from genodiff.tasks.suite import Pool, Suite, Task, TaskFiles, find_suite_file
from genodiff.tasks.task import load_task, seed_split
from tests.labelled_files import random_dna, write


def files_of(folder: Path, pool: Pool | None, *, oriented: bool = False) -> TaskFiles:
    task = Task(
        suite="own", name="t", kind="regression", classes=(), max_length=60, pool=pool,
        oriented=oriented,
    )  # fmt: skip
    return TaskFiles(Suite(suite="own", layout="pooled", tasks=(task,)), task, folder)


def write_rows(path: Path, rows: list[tuple[str, object]], header: str = "sequence,value") -> None:
    lines = [header] * bool(header) + [f"{s},{v}" for s, v in rows]
    write(path, "\n".join(lines) + "\n")


def test_a_sequence_is_one_example_with_the_mean_of_its_values(tmp_path):
    sequences = random_dna(20, 60)
    other = str(reverse_complement(sequences[0]))
    write_rows(tmp_path / "a.csv.gz", [(s, i) for i, s in enumerate(sequences)])
    write_rows(tmp_path / "b.csv.gz", [(sequences[1], 5), (other, 8), ("N" + sequences[2][1:], 99)])
    pool = Pool(files=("a.csv.gz", "b.csv.gz"), drop_n=True)
    for oriented, n, first in ((False, 20, 4.0), (True, 21, 0.0)):
        parts = read_pooled(files_of(tmp_path, pool, oriented=oriented))
        whole = concatenate(parts.train, parts.test)
        found = dict(zip(map(bytes.decode, whole.sequences), whole.labels, strict=True))
        assert len(found) == whole.n == n
        key = sequences
        if not oriented:
            key = [min(s, str(reverse_complement(s))) for s in sequences]
        assert found[key[0]] == first
        assert found[key[1]] == 3.0
        assert max(found.values()) < 99
        assert any("1 rows with N" in note for note in parts.notes)


def test_values_below_0_count_as_0_before_the_log(tmp_path):
    sequences = random_dna(20, 60)
    write_rows(tmp_path / "a.csv.gz", [(s, i - 5) for i, s in enumerate(sequences)], header="")
    pool = Pool(files=("a.csv.gz",), header=False, log=True)
    parts = read_pooled(files_of(tmp_path, pool, oriented=True))
    found = sorted([*parts.train.labels, *parts.test.labels])
    assert np.allclose(found, np.log1p(np.maximum(np.arange(20) - 5, 0)))
    assert any("5 below 0 count as 0" in note for note in parts.notes)


def test_mutants_of_one_sequence_stand_on_one_side(tmp_path):
    rows = []
    for i, s in enumerate(random_dna(40, 60)):
        rows += [(s, i), (s[:59] + ("A" if s[59] != "A" else "C"), i), (s[1:] + "G", i)]
    write_rows(tmp_path / "a.csv.gz", rows)
    parts = read_pooled(files_of(tmp_path, Pool(files=("a.csv.gz",))))
    assert parts.groups is not None
    assert parts.test.n >= 24
    assert not set(parts.train.labels) & set(parts.test.labels)
    again = read_pooled(files_of(tmp_path, Pool(files=("a.csv.gz",))))
    assert again.test.names == parts.test.names


def test_faults_name_the_line(tmp_path):
    write_rows(tmp_path / "a.csv.gz", [("ACGT" * 15, 1), ("ACGTA" * 12, "many")])
    write_rows(tmp_path / "b.csv.gz", [("ACGT" * 15, "1,2")], header="")
    for pool, message in (
        (Pool(files=("a.csv.gz",)), r"line 3.*'many' is not a finite number"),
        (Pool(files=("a.csv.gz",), value="expression"), "no column 'expression'"),
        (Pool(files=("b.csv.gz",), header=False), "3 fields, not a sequence and a value"),
        (None, "does not say which tables it pools"),
    ):
        with pytest.raises((DataError, UsageError), match=message):
            read_pooled(files_of(tmp_path, pool))


@pytest.mark.skipif("GENODIFF_SHARED" not in os.environ, reason="needs the shared data")
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("suite", "task", "folder", "n"),
    [
        ("deepstarr-sample", "developmental", "starr", 2922),
        ("measured-promoters", "ecoli_tss", "promoters", 13029),
        ("measured-promoters", "yeast_complex", "promoters", 19018),
    ],
)
def test_the_real_tables_are_read_and_split(suite, task, folder, n):
    source = Path(os.environ["GENODIFF_SHARED"]) / "data" / folder
    data = load_task(suite, task, source=source)
    assert data.train.n + data.test.n == n
    assert data.split == "homology"
    assert load_task(suite, task, source=source, split="homology").test.names == data.test.names
    assert 0.19 < data.test.n / n < 0.21
    assert data.train.labels.min() >= (0 if task == "ecoli_tss" else -10)
    train, valid = seed_split(data, 1)
    assert not set(data.groups[train]) & set(data.groups[valid])


def test_a_suites_file_is_found_below_the_folder_that_was_given(tmp_path):
    near, far = tmp_path / "nt" / "deep", tmp_path / "other"
    for folder in (near, far):
        folder.mkdir(parents=True)
    write_rows(near / "a.csv", [("A", 1)])
    places = ((near, "a.csv"), (tmp_path, "a.csv"), (tmp_path, "deep/a.csv"))
    for place, name in (*places, (near / "a.csv", "a.csv")):
        assert find_suite_file(place, name) == near / "a.csv"
    write_rows(far / "a.csv", [("A", 1)])
    assert find_suite_file(far, "a.csv") == far / "a.csv"
    with pytest.raises(DataError, match=r"a\.csv stands in .*deep and in .*other"):
        find_suite_file(tmp_path, "a.csv")
    with pytest.raises(DataError, match=r"holds no b\.csv"):
        find_suite_file(tmp_path, "b.csv")
