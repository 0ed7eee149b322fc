"""Labels: what a file says, which window has which, and the share that training hides."""

from pathlib import Path

import numpy as np
import pytest
import torch
from genomes import random_dna, windows_of

from genodiff.data.labels import NONE, place_labels, read_labels
from genodiff.data.loader import TrainBatches
from genodiff.errors import DataError, UsageError
from genodiff.runs.labels import read_label_settings

CONTIGS = {"a": random_dna(1000), "b": random_dna(640, 1), "v": random_dna(160, 3)}


def write(folder: Path, *rows: str) -> Path:
    path = folder / "labels.tsv"
    path.write_text("# a comment\n" + "".join(row.replace(" ", "\t") + "\n" for row in rows))
    return path


@pytest.fixture
def windows(tmp_path):
    return windows_of(tmp_path, CONTIGS, 32, valid=("v",))


def test_a_window_has_the_label_of_its_middle_base(windows, tmp_path):
    file = write(tmp_path, "a 100 300 high", "a 300 400 low", "a 350 420 low", "b 0 640 high")
    table = read_labels(file)
    assert table.classes == ("high", "low")
    labels = place_labels(table, windows.store)
    start = np.array([0, 83, 84, 283, 284, 403, 404, 1000, 1900])
    found = labels.of(start, np.full(len(start), 32))
    middle = start + 16
    truth = np.full(2000, NONE)
    truth[100:300], truth[300:420], truth[1000:1640] = 0, 1, 0
    assert found.tolist() == truth[middle].tolist()


def test_a_table_labels_contigs_whole_and_quantiles_are_of_rows(windows, tmp_path):
    table = read_labels(write(tmp_path, "b yeast", "a human", "elsewhere fly"))
    assert table.classes == ("fly", "human", "yeast")
    labels = place_labels(table, windows.store)
    assert labels.of(np.array([0, 900, 1000]), np.array([32, 32, 32])).tolist() == [1, 1, 2]
    rows = [f"a {i} {i + 1} x {value}" for i, value in enumerate([5, 1, 1, 9, 7, 3, 8, 2])]
    table = read_labels(write(tmp_path, *rows), quantiles=4, column=5)
    assert table.classes == ("q1", "q2", "q3", "q4")
    assert table.labels.tolist() == [2, 0, 0, 3, 2, 1, 3, 1]


@pytest.mark.parametrize(
    ("rows", "how", "said"),
    [
        ((), {}, "holds no label"),
        (("a",), {}, "no label in column 2"),
        (("a 5 5 x",), {}, "no interval"),
        (("a 0 9 x y",), {"column": 9}, "no label in column 9"),
        (("a not/ok",), {}, "label 'not/ok'"),
        (("a 1", "b much"), {"quantiles": 2}, "'much' is not a finite number"),
        (("a 1", "b nan"), {"quantiles": 2}, "'nan' is not a finite number"),
        (("a 1", "b 1", "v 2"), {"quantiles": 3}, "q2 is empty"),
        (("a 0 100 x", "b start 100 y"), {}, "line 3: the position 'start' is not an integer"),
        (("a 0 1,000 x", "b 0 100 y"), {}, "line 2: .*'1,000' has thousands separators"),
        (("a x", "b NA"), {}, "line 3: the label 'NA' says that a value is missing"),
        (("a x", "b y", "contig label"), {}, "line 4: 'contig' and 'label' are names of columns"),
        (("a x", "b X"), {}, "'X' and 'x' differ in capitals only"),
        (("a x", "b y", "a y"), {}, "line 4: the contig a has the label 'x' in line 2"),
        (("a x", "b y", "v 3"), {}, "line 4: the label '3' is a number, and all others are names"),
        (("a 1", "b 2", "v high"), {}, "line 4: the label 'high' is no number, and all others are"),
        (("a x", "b 1-Sep"), {}, "line 3: the label '1-Sep' is a date"),
    ],
)
def test_a_faulty_file_is_refused(tmp_path, rows, how, said):
    with pytest.raises(DataError, match=said):
        read_labels(write(tmp_path, *rows), **how)


@pytest.mark.parametrize(
    ("text", "classes", "line"),
    [
        ("chrom\tstart\tend\tname\na\t0\t100\tx\nb\t0\t100\ty\n", ("x", "y"), 1),
        ("contig\tlabel\na\tx\nb\ty\n", ("x", "y"), 1),
        ("#c\n\ncontig,species\na,x\nb,y\n", ("x", "y"), 3),
        ("seqname;class\r\na;x\r\nb;y\r\n", ("x", "y"), 1),
    ],
)
def test_a_line_of_names_is_skipped_and_told(tmp_path, caplog, text, classes, line):
    (tmp_path / "l").write_text(text)
    table = read_labels(tmp_path / "l")
    assert (table.classes, table.contigs) == (classes, ("a", "b"))
    assert read_label_settings(str(tmp_path / "l"), {}, {})["classes"] == list(classes)
    assert f"line {line}: column names, skipped" in caplog.text


def test_names_of_columns_that_nobody_knows_are_refused_by_the_genome(windows, tmp_path, caplog):
    table = read_labels(write(tmp_path, "molecule clade", "a x", "b y"))
    with pytest.raises(DataError, match=r"line 2: .*'molecule'.*'clade': are these column names"):
        place_labels(table, windows.store)
    place_labels(read_labels(write(tmp_path, "a x", "b y", "c x", "d z")), windows.store)
    assert "2 of 4 rows are on contigs that the genome lacks" in caplog.text
    assert "first: line 4, c" in caplog.text


def test_labels_that_do_not_fit_the_genome_are_refused(windows, tmp_path):
    for rows, said in (
        (("a 0 100 x", "a 50 80 y"), "overlaps line 2"),
        (("a 0 100 x", "a 900 1001 y"), "ends at 1001, beyond a"),
        (("c 0 100 x",), "no such contig"),
    ):
        with pytest.raises(DataError, match=said):
            place_labels(read_labels(write(tmp_path, *rows)), windows.store)
    with pytest.raises(UsageError, match="the contig's"):
        read_labels(write(tmp_path, "a x"), column=1)


def test_dropout_hides_a_share_and_is_the_same_in_every_layout(windows, tmp_path):
    labels = place_labels(read_labels(write(tmp_path, "a x", "b y")), windows.store)
    plain = TrainBatches(windows, 5, 400)
    batches = TrainBatches(windows, 5, 400, labels=labels, label_dropout=0.25)
    shown = TrainBatches(windows, 5, 400, labels=labels)
    n = hidden = 0
    for k in range(5):
        one, other, full = batches.batch(k), plain.batch(k), shown.batch(k)
        assert other.labels is None
        assert torch.equal(one.x0, other.x0)
        assert torch.equal(one.u_mask, other.u_mask)
        assert (full.labels >= 0).all()
        kept = one.labels != NONE
        assert torch.equal(one.labels[kept], full.labels[kept])
        n, hidden = n + len(kept), hidden + int((~kept).sum())
    assert abs(hidden / n - 0.25) < 4 * (0.25 * 0.75 / n) ** 0.5
    whole = batches.batch(1).labels
    for world, accumulate in ((2, 1), (1, 4), (2, 2)):
        parts = [
            TrainBatches(
                windows, 5, 400, accumulate, rank, world, labels=labels, label_dropout=0.25
            ).batch(accumulate + micro)
            for micro in range(accumulate)
            for rank in range(world)
        ]
        found = torch.cat([part.labels for part in parts if part.labels is not None])
        assert torch.equal(found, whole)
