"""Labels of people's own tables: parts that agree, missing values, decimal commas, one table."""

from pathlib import Path

import pytest

import genodiff
from genodiff.errors import DataError, UsageError
from genodiff.tasks.labelled_file import TableColumns, read_examples
from tests.labelled_files import load_own, random_dna

ROWS = random_dna(60, 40)
VALUES = [f"{i * 0.25 + 0.125:.3f}" for i in range(20)]
PERCENT, MIXED = [f"{i}.5%" for i in range(8)], [*["0", "1"] * 10, "other"]


def write(path: Path, labels: list[str], separator: str = ",", first: int = 0) -> Path:
    lines = [f"{ROWS[first + i]}{separator}{label}" for i, label in enumerate(labels)]
    path.write_text("\n".join([f"sequence{separator}label", *lines, ""]))
    return path


@pytest.mark.parametrize("part", ["test", "valid"])
def test_parts_whose_labels_share_no_class_are_refused_with_both_sides(tmp_path, part):
    train = write(tmp_path / "train.csv", ["active", "inactive"] * 5)
    parts = {name: write(tmp_path / f"{name}.csv", ["active", "inactive"], first=20)
             for name in ("test", "valid")}  # fmt: skip
    write(parts[part], ["0", "1", "0"], first=20)
    message = "line 2: the labels 0, 1 are none of the train part's: active, inactive"
    with pytest.raises(DataError, match=rf"{part}\.csv, {message}"):
        load_own(train, parts["test"], valid=parts["valid"])


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        (["0", "1"], ["active", "inactive"], "labels active, inactive are none .*: 0, 1"),
        (["yes", "no"], ["YES", "NO"], "none of the train part's: no, yes; .*differ in capitals"),
        (["0", "1"], ["0.5", "0.25"], "labels 0.25, 0.5 are none .*--kind regression"),
        (["a", "b"], ["a", "c"], "line 3: unknown label 'c': the classes are a, b"),
        (["0.5", "0.25"], ["active", "inactive"], "'active' is not a finite number, nor is any"),
    ],
)
def test_parts_that_do_not_agree_are_refused(tmp_path, train, test, message):
    one = write(tmp_path / "a.csv", train * 4)
    with pytest.raises(DataError, match=message) as fault:
        load_own(one, write(tmp_path / "b.csv", test, first=20))
    assert Path(str(fault.value.file)).name == "b.csv"


def test_classes_that_pandas_wrote_as_floats_are_those_written_as_whole_numbers(tmp_path):
    train = write(tmp_path / "a.csv", ["0", "1", "0", "1"])
    data = load_own(train, write(tmp_path / "b.csv", ["1.0", "0.0"], first=20))
    assert (data.task.classes, data.test.labels.tolist()) == (("0", "1"), [1, 0])


BAD = {"NA": "'NA' says that a value is missing", "nan": "'nan' says that a value is missing",
       "inf": "'inf' is not a finite number",
       "-": "'-' is not a finite number", "": "no label in column 'label'",
       "<0.1": "'<0.1' is not a finite number", "high": "'high' is not a finite number",
       "1e999": "not a finite number", "#N/A": "a value is missing"}  # fmt: skip


@pytest.mark.parametrize("bad", BAD)
def test_one_bad_row_never_turns_a_regression_into_classes(tmp_path, bad):
    whole = write(tmp_path / "whole.csv", VALUES)
    spoilt = write(tmp_path / "spoilt.csv", [*VALUES[:7], bad, *VALUES[8:]])
    for train, test in ((spoilt, whole), (whole, spoilt), (spoilt, spoilt)):
        with pytest.raises(DataError, match=rf"spoilt\.csv, line 9: .*{BAD[bad]}"):
            load_own(train, test)


def test_two_columns_that_differ_in_capitals_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"sequence,label,Label\n{ROWS[0]},x,y\n{ROWS[1]},y,x\n")
    with pytest.raises(DataError, match="the columns 'label' and 'Label' differ in capitals only"):
        read_examples(path)


def test_rows_that_lack_a_value_are_dropped_and_counted_on_request(tmp_path, caplog):
    labels = [*VALUES[:3], "NA", *VALUES[4:9], "inf", *VALUES[10:]]
    path = write(tmp_path / "a.csv", labels)
    path.write_text(path.read_text().replace(ROWS[1], "NA").replace(ROWS[19], ""))
    columns = TableColumns(own=True, drop_missing=True)
    examples, kind, _ = read_examples(path, columns)
    kept = [i for i in range(20) if i not in (1, 3, 9, 19)]
    assert (kind, examples.labels.tolist()) == ("regression", [float(VALUES[i]) for i in kept])
    assert examples.sequences == [ROWS[i].encode() for i in kept]
    assert "4 of 20 rows dropped (no label: 2, no sequence: 2; first: line 3)" in caplog.text
    comma = write(tmp_path / "b.csv", [*VALUES, '"0,5"'])
    with pytest.raises(DataError, match=r"line 22: the label '0,5'.*decimal point"):
        read_examples(comma, columns)


@pytest.mark.parametrize("cell", ["NA", "NaN", "NAN", "nan", "null", "<NA>"])
def test_a_sequence_that_says_missing_is_no_dna(tmp_path, cell):
    path = write(tmp_path / "a.csv", ["x", "y", "x"])
    path.write_text(path.read_text().replace(ROWS[1], cell))
    with pytest.raises(
        DataError, match=rf"line 3 .*sequence '{cell}' says that a value is missing"
    ):
        read_examples(path)


def test_classes_among_which_numbers_are_stay_classes(tmp_path):
    path = write(tmp_path / "a.csv", ["1", "2", "X"] * 4)
    assert read_examples(path)[1:] == ("multiclass", ("1", "2", "X"))
    path = write(tmp_path / "b.csv", ["+", "-"] * 4)
    assert read_examples(path)[2] == ("+", "-")
    for labels, n in ((MIXED, 3), (PERCENT, 8)):
        assert len(read_examples(write(path, labels), kind="multiclass")[2]) == n


def test_decimal_commas_are_read_where_they_cannot_be_anything_else(tmp_path):
    commas = [value.replace(".", ",") for value in VALUES]
    for name, separator in (("a.csv", ";"), ("b.tsv", "\t")):
        found, kind, _ = read_examples(write(tmp_path / name, commas, separator))
        assert (kind, found.labels.tolist()) == ("regression", [float(v) for v in VALUES])
    path = write(tmp_path / "c.tsv", ["1,004", "2,500", "3,125"], "\t")
    with pytest.raises(DataError, match="line 2: '1,004' may have a decimal comma or a thousands"):
        read_examples(path)
    found = read_examples(write(tmp_path / "d.csv", ["1,004", "2,500", "3,125"], ";"))[0]
    assert found.labels.tolist() == [1.004, 2.5, 3.125]
    path = write(tmp_path / "e.csv", ["0,5", "1,25", "1.234,5", "0,25"], ";")
    with pytest.raises(DataError, match=r"line 4: the label '1.234,5'.*decimal comma"):
        read_examples(path)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["True", "False", "TRUE", "False"], "labels 'True' and 'TRUE' differ in capitals only"),
        (["SEPT1", "x", "1-Sep", "x"], "line 4: the label '1-Sep' is a date"),
        (["a&amp;b", "x", "a&amp;b", "x"], "holds &amp;, a code of web pages"),
        (["a\u200b", "x", "a\u200b", "x"], "has an invisible or control character"),
        (["‘a’", "x", "‘a’", "x"], "has a quotation mark"),
        (["a", "NA", "a", "b"], "line 3: the label 'NA' says that a value is missing"),
        (["0", "1", "01", "0"], "the labels '01' and '1' are the same number"),
        (PERCENT, r"line 2: the label '0\.5%' .*write numbers without %"),
        (MIXED, r"line 22: the label 'other' .*--kind multiclass"),
    ],
)
def test_a_label_that_is_spoilt_or_stands_among_numbers_is_no_class(tmp_path, labels, message):
    with pytest.raises(DataError, match=message):
        read_examples(write(tmp_path / "a.csv", labels))


def test_two_tables_with_the_same_columns_in_another_order_agree(tmp_path):
    header, other = "seq,class,label,sequence", "sequence,label,class,seq"
    rows = [(ROWS[i], "ab"[i % 2], "xy"[i % 2], ROWS[i + 30]) for i in range(8)]
    for name, names, turn in (("a.csv", header, 1), ("b.csv", other, -1)):
        lines = [",".join(row[::turn]) for row in rows]
        (tmp_path / name).write_text("\n".join([names, *lines, ""]))
    data = load_own(tmp_path / "a.csv", tmp_path / "b.csv")
    assert data.task.classes == ("x", "y")
    assert data.train.sequences == data.test.sequences == [row[3].encode() for row in rows]


def test_a_share_of_one_table_tests_and_alike_sequences_stay_together(tmp_path):
    path = write(tmp_path / "one.csv", ["a", "b"] * 20)
    lines = path.read_text().splitlines()
    twins = [lines[i][1:].replace(",", "A,") for i in range(1, 11)]  # 39 of 40 bases alike
    path.write_text("\n".join([*lines, *twins, ""]))
    data = load_own(path, test_share=0.2)
    assert (data.train.n, data.test.n) == (40, 10)
    assert data.split == "homology"
    tested = {sequence[5:35] for sequence in data.test.sequences}
    assert not tested & {s[i : i + 30] for s in data.train.sequences for i in (4, 5, 6)}
    again = load_own(path, test_share=0.2)
    assert again.test.sequences == data.test.sequences
    for how in ({"valid": path}, {"test": path}, {"split": "dedup"}):
        with pytest.raises(UsageError, match="--test-share"):
            load_own(path, test_share=0.2, **how)
    with pytest.raises(UsageError, match="not between 0 and 1"):
        load_own(path, test_share=20)


def test_one_table_without_a_test_part_is_refused_before_anything_is_written(tmp_path):
    one = write(tmp_path / "one.csv", ["a", "b"] * 20)
    with pytest.raises(UsageError, match=r"which one tests.*--test-share 0\.2"):
        genodiff.finetune(one, model="kmer-lr", out=tmp_path / "out")
    other = write(tmp_path / "other.csv", ["0", "1"], first=45)
    with pytest.raises(DataError, match="labels 0, 1 are none of the train part's: a, b"):
        genodiff.finetune(one, test=other, model="kmer-lr", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
