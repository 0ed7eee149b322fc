"""A list of genomes: what it may say, and one clear line for each line that is wrong."""

import logging

import pytest
from many_genomes import write_list

from genodiff.data.genomes.listing import read_genome_list
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
