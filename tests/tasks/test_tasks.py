"""Tasks: recipes and published values, the order of labels, the seeds' splits, pooled tables."""

import os
from pathlib import Path

import numpy as np
import pytest

from genodiff.alphabet import reverse_complement
from genodiff.data.recipe import list_recipe_folders
from genodiff.errors import DataError, UsageError
from genodiff.settings import read_yaml
from genodiff.tasks.class_folders import read_class_folders
from genodiff.tasks.examples import Examples, concatenate
from genodiff.tasks.layouts.pooled import read_pooled
from genodiff.tasks.published_scores import PublishedTable, find_published
from genodiff.tasks.suite import (
    Pool,
    Suite,
    Task,
    TaskFiles,
    find_suite_file,
    list_task_names,
    load_suite,
)
from genodiff.tasks.suite_files import list_suite_files
from genodiff.tasks.task import TaskData, load_task, seed_split
from tests.labelled_files import check_equal, random_dna, write, write_folder


def data_of(n: int) -> TaskData:
    examples = Examples([b"ACGT"] * n, np.arange(n) % 2, [str(i) for i in range(n)])
    return TaskData(Task(suite="s", name="t", max_length=4), examples, examples, "official")


@pytest.mark.parametrize("suite", list_suite_files())
def test_every_suite_is_read_and_its_rows_agree_with_one_another(suite):
    found = load_suite(suite)
    names = list_task_names(suite)
    assert len(names) == len(set(names))
    for task in found.tasks:
        assert task.suite == suite == found.suite
        assert set(task.references) <= set(task.classes)
        assert set(task.references.values()) <= set(found.references)
        assert all(len(counts) == len(task.classes) for counts in task.counts.values())


def test_the_published_sets_are_complete():
    sizes = {"genomic-benchmarks": 9, "gue": 28, "nt": 18, "nt-revised": 18, "idna-ms": 16}
    assert {suite: len(list_task_names(suite)) for suite in sizes} == sizes


def test_unknown_names_are_answered_with_the_nearest():
    for suite, task, split, near in (
        ("gui", "tf/0", "official", "gue"), ("gue", "tf/0", "dedupe", "dedup"),
        ("genomic-benchmarks", "human_enhancer_cohn", "official", "human_enhancers_cohn"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=f"did you mean '{near}'"):
            load_task(suite, task, split=split)


def test_a_seeds_split_is_nine_to_one_disjoint_and_depends_on_the_seed_alone():
    data = data_of(105)
    train, valid = seed_split(data, 1)
    assert (len(train), len(valid)) == (95, 10)
    assert sorted([*train, *valid]) == list(range(105))
    np.testing.assert_equal(seed_split(data_of(105), 1), (train, valid))
    assert set(seed_split(data, 2)[1]) != set(valid)
    assert seed_split(data_of(50), 1)[1].tolist() == [9, 12, 18, 22, 43], "it is pinned"
    with pytest.raises(DataError, match="at least two"):
        seed_split(data_of(1), 1)


def test_a_published_validation_part_serves_every_seed():
    data = data_of(10)._replace(valid_index=np.array([9, 8]))
    for seed in (1, 2):
        train, valid = seed_split(data, seed)
        assert train.tolist() == list(range(8))
        assert valid.tolist() == [8, 9]


def test_labels_and_splits_do_not_depend_on_the_order_in_which_folders_list_their_files(
    tmp_path, monkeypatch
):
    one = read_class_folders(write_folder(tmp_path / "one", n=12))
    other = read_class_folders(write_folder(tmp_path / "other", n=12, order=-1))
    listing = os.scandir

    class Shuffled:
        def __init__(self, path: str) -> None:
            self.entries = sorted(listing(path), key=lambda entry: hash((entry.name, 7)))

        def __enter__(self) -> "Shuffled":
            return self

        def __exit__(self, *_: object) -> None: ...

        def __iter__(self) -> object:
            return iter(self.entries)

    monkeypatch.setattr(os, "scandir", Shuffled)
    assert one[2] == ("negative", "positive")
    check_equal(other, one)
    check_equal(read_class_folders(tmp_path / "one"), one)


def test_a_task_takes_only_as_many_classes_as_its_kind_has():
    two = {"classes": ("a", "a")}
    for values in ({"classes": ("a",)}, {"kind": "multiclass"}, {"kind": "regression"}, two):
        with pytest.raises(ValueError):
            Task(suite="s", name="t", max_length=4, **values)


def test_data_that_are_not_the_published_ones_are_refused(shared, tmp_path):
    write_folder(tmp_path / "human_enhancers_cohn", length=500)
    folder = shared / "data/genomic_benchmarks"
    for source, message in (
        (tmp_path, "the published data 10,422 / 10,421"),
        (folder / "human_enhancers_cohn", "use --split local"),
        (folder, "give your own copy with --reference hg38=FILE"),
    ):
        with pytest.raises(DataError, match=message):
            load_task("genomic-benchmarks", "human_enhancers_cohn", source=source, offline=True)


def test_the_local_split_is_named_and_disjoint(shared):
    source = shared / "data/genomic_benchmarks"
    data = load_task("genomic-benchmarks", "human_nontata_promoters", source=source, split="local")
    assert (data.split, data.train.n, data.test.n) == ("local", 6344 + 898, 1792)
    assert "not comparable" in data.notes[0]
    assert not set(data.train.sequences) & set(data.test.sequences)


@pytest.mark.parametrize("name", ["tf/0", "mouse/3", "prom/prom_300_tata"])
def test_complete_gue_tasks_are_read_with_their_dev_part(shared, name):
    data = load_task("gue", name, source=shared / "data/nt_tasks/GUE")
    assert data.valid_index is not None
    assert len(data.valid_index) == sum(data.task.counts["dev"])
    assert data.test.n == sum(data.task.counts["test"])


def test_a_gue_task_without_its_train_part_says_so(shared):
    with pytest.raises(DataError, match="EMP/H3 has no train part here"):
        load_task("gue", "EMP/H3", source=shared / "data/nt_tasks/GUE")


def test_suites_in_one_table_are_read_by_their_rows(shared):
    data = load_task("idna-ms", "4mC_C.equisetifolia", source=shared / "data/nt_tasks")
    assert set(map(len, data.train.sequences)) == {41}
    assert load_task("ienhancer", "enhancers", source=shared / "data/nt_tasks").test.n == 400


FILES = [
    path for folder in list_recipe_folders() for path in sorted((folder / "published").glob("*"))
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_is_read_and_names_tasks_of_its_suite(path):
    table = PublishedTable.parse(read_yaml(path), file=path)  # type: ignore[arg-type]
    assert set(table.order) <= set(list_task_names(table.suite))
    for row in table.rows:
        assert row.source
        assert any(row.values)
        assert all(-1 <= value[0] <= 1 for value in row.values if value)


def test_rows_of_another_metric_say_so_and_the_others_do_not():
    found = {value.name: value for value in find_published("gue", "tf/0", "official")}
    assert found["DNABERT-2"].metric == ""
    assert (found["DNABERT-2"].mean, found["DNABERT-2"].weights) == (0.7199, 117)
    assert found["BioArc, masked"].metric == "accuracy"
    assert "probably" in found["BioArc, masked"].note
    assert found["Caduceus-Ph, frozen"].metric == "auroc"
    assert "frozen" in found["Caduceus-Ph, frozen"].note
    assert find_published("gue", "tf/0", "dedup") == []
    mouse = {v.name: v for v in find_published("gue", "mouse/0", "official")}
    assert {v.metric for v in mouse.values()} == {"", "auroc"}
    assert mouse["DNABERT-2"].mean == 0.5676


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
