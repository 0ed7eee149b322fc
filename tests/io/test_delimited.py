"""Tables as text: one reader finds the separator, the encoding and the line of names."""

from pathlib import Path

import pytest

from genodiff.errors import DataError
from genodiff.io.delimited import read_delimited
from genodiff.io.text_lines import read_whole

ROWS = [["chr1", "100", "A"], ["chr2", "200", "C"]]


def read(path: Path, data: str | bytes, usual: str = ",") -> tuple[list[str], list[list[str]]]:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    table = read_delimited(path, usual)
    return table.names, [fields for _, fields in table.rows]


@pytest.mark.parametrize("separator", [",", ";", "\t", " ", ", "])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_separator_and_encoding_are_told_by_the_file(tmp_path, separator, encoding):
    text = "".join(separator.join(row) + "\r\n" for row in [["chrom", "pos", "ref"], *ROWS])
    assert read(tmp_path / "a.csv", text.encode(encoding)) == (["chrom", "pos", "ref"], ROWS)


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ('"a" "b"\n"1" 5 "x y"\n"2" 6 "z"\n', ["", "a", "b"], [["1", "5", "x y"], ["2", "6", "z"]]),
        (",a,b\n0,5,x\n1,6,y\n", ["", "a", "b"], [["0", "5", "x"], ["1", "6", "y"]]),
        ("a,b,\n5,x,\n", ["a", "b", ""], [["5", "x", ""]]),
        ("a,b\n5,x,\n6,y,\n", ["a", "b"], [["5", "x"], ["6", "y"]]),
        ("sep=;\na;b\n5;x\n", ["a", "b"], [["5", "x"]]),
        ("## by CADD\n#a\tb\n5\tx\n", ["a", "b"], [["5", "x"]]),
        ("# made in May\na,b\n5,x\n", ["a", "b"], [["5", "x"]]),
        ("a;b,c\n1;2\n3;4\n", ["a", "b,c"], [["1", "2"], ["3", "4"]]),
        (" a ,b\n 5,\xa0x\xa0\n", ["a", "b"], [["5", "x"]]),
    ],
)  # fmt: skip
def test_the_layouts_of_programs_are_known(tmp_path, text, names, rows):
    assert read(tmp_path / "a.csv", text) == (names, rows)


def test_two_layouts_that_both_fit_are_told(tmp_path, caplog):
    text = "a;x,b;y\n1;2,3;4\n"  # three fields by semicolons, two by commas
    assert read(tmp_path / "a.csv", text) == (["a;x", "b;y"], [["1;2", "3;4"]])
    assert "read as separated by commas; semicolons would fit every row too" in caplog.text


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "is empty: no header line"),
        ("<!DOCTYPE html>\n<p>\n", "line 1: not a table: this is HTML"),
        ("a,b\n1,2\na,b\n", "line 3: the line of column names stands again"),
        ("a,b\n1,2\n3\n", "line 3: 1 field, but the header has 2"),
        ("a,a\n1,2\n", "line 1: duplicate column name: 'a'"),
        ("a,b\n1,é\n".encode("latin-1"), r"line 2: byte 0xE9 is not UTF-8 .*Windows-1252.*iconv"),
        ("a,b\n1,2\n".encode("utf-16")[:-1], "UTF-16 text is cut short"),
        ("a,b\u200b\n1,2\n", "line 1: the column's name .*invisible"),
        ('a,b\n1,"2\n', "line 2: not CSV"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused_with_its_line(tmp_path, data, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path / "a.csv", data)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("1000", 1000), ("1000.0", 1000), ("12.00", 12), ("1e+05", 100_000),
        ("1.2e+07", 12_000_000), ("123e+05", None), ("5e+02", None), ("1.23457e+06", None),
        ("1.000", None), ("1,000", None), ("1.00E+05", None), ("1000.5", None), ("-1", None),
        ("1_000", None), ("١", None), ("NA", None), ("", None), ("1.20e+07", None),
    ],
)  # fmt: skip
def test_a_whole_number_is_read_only_where_no_digit_can_be_lost(text, value):
    assert read_whole(text) == value
