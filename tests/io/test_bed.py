"""BED rows mean exactly what they say, or are an error with their line."""

import gzip
import logging

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genodiff.errors import DataError, UsageError
from genodiff.io import input_file
from genodiff.io.bed import SCHEMA, check_splits, read_bed
from genodiff.io.regions import parse_region

CONTIGS = {
    "chr1": 10_000,
    "chr2": 5_000,
    "chrM": 500,
    "HLA-A*01:01": 40,
    "chr6:29-31": 90,
    "chr6": 130,
}


@pytest.fixture
def bed(tmp_path):
    return tmp_path / "in.bed"


def test_rows_come_back_in_the_files_order_with_their_lines(bed):
    bed.write_bytes(
        b"\xef\xbb\xbfbrowser position chr1:1-100\ntrack name=x\n#chrom\tstart\tend\r\n"
        b"chr2\t100\t1124\ttest\t0\t+\r\n\n  \nchr1\t0\t10000\tgene "
        b"a\t.\t.\t0\t0\nchr1\t5\t6\t\t\t-\n".replace(b"\t0\t0\n", b"\n")
    )
    table = read_bed(bed, CONTIGS)
    assert table.schema == pl.Schema(SCHEMA)
    assert table.rows() == [
        ("chr2", 100, 1124, "test", "0", "+", 4),
        ("chr1", 0, 10_000, "gene a", ".", ".", 7),
        ("chr1", 5, 6, "", "", "-", 8),
    ]


def test_blanks_and_tabs_at_line_ends_and_compression_change_nothing(bed):
    bed.write_bytes(b"chr1\t0\t1024\ttrain\nchr2\t1\t9\ttest\n")
    plain = read_bed(bed, CONTIGS)
    for other in (
        b"chr1\t0\t1024\ttrain\t \nchr2\t1\t9\ttest\t\t",
        b"chr1\t0\t1024\ttrain \r\nchr2\t1\t9\ttest\r\n",
        gzip.compress(b"chr1\t0\t1024\ttrain\nchr2\t1\t9\ttest\n", mtime=0),
    ):
        bed.write_bytes(other)
        assert read_bed(bed, CONTIGS).equals(plain)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(list(CONTIGS)), st.integers(0, 39), st.integers(1, 40)),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from([b"\n", b"\r\n"]),
    st.sampled_from([4, 16, 1 << 20]),
)
def test_sound_rows_are_read_exactly_wherever_blocks_end(tmp_path_factory, rows, end, block):
    rows = [(c, min(a, b - 1), b) for c, a, b in rows]
    path = tmp_path_factory.mktemp("bed") / "in.bed"
    path.write_bytes(end.join(f"{c}\t{a}\t{b}".encode() for c, a, b in rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(input_file, "BLOCK", block)
        table = read_bed(path, CONTIGS)
    assert table.select("contig", "start", "end", "line").rows() == [
        (*row, n) for n, row in enumerate(rows, 1)
    ]


@pytest.mark.parametrize("row", ["chr1\t0\t100.0", " chr1 \t 0\t100 ", "chr1\t0.0\t100"])
def test_whole_numbers_of_pandas_and_blanks_round_values_are_read(bed, row):
    for data in (row.encode(), row.encode("utf-16")):
        bed.write_bytes(data)
        assert read_bed(bed, CONTIGS).rows() == [("chr1", 0, 100, None, None, None, 1)]


def test_a_line_without_end_is_refused_before_it_fills_the_memory(bed, monkeypatch):
    monkeypatch.setattr("genodiff.io.text_lines._LONGEST", 1000)
    monkeypatch.setattr(input_file, "BLOCK", 400)
    bed.write_bytes(b"chr1\t0\t1\nchr1" + b"x" * 5000)
    with pytest.raises(DataError, match="line 2: a line is longer than 1,000 bytes"):
        read_bed(bed)


def test_empty_and_repeated_intervals_are_counted(bed, caplog):
    bed.write_bytes(b"chr1\t0\t10\nchr1\t5\t5\nchr1\t0\t10\n")
    with caplog.at_level(logging.WARNING, "genodiff"):
        assert read_bed(bed).height == 2
    assert "1 intervals of length 0 dropped" in caplog.text
    assert "1 rows stand more than once" in caplog.text


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("chr1 0 9 valid,chr1 9 20 valid,chr2 1 9 test", "no interval of the split train"),
        (
            "chr1 0 9 train,chr1 8 20 valid",
            r"line 2: the valid interval chr1:8-20 overlaps a train interval \(line 1\)",
        ),
        (
            "chr1 8 20 test,chr1 0 9 Train",
            r"line 1: the test interval chr1:8-20 overlaps a train interval \(line 2\)",
        ),
        (
            "chr1 0 100 train,chr1 5 6 train,chr1 50 60 val",
            r"line 3: the valid .* train interval \(line 1\)",
        ),
        ("chr2 0 9 train,chr1 5 6 test,chr1 0 9 validation", "overlaps a valid interval"),
        ("chr1 0 9 train,chr1 9 20 trian", "line 2: unknown split 'trian'; did you mean 'train'"),
        ("chr1 0 9 train,chr1 9 20 .", "line 2: unknown split '.'"),
    ],
)
def test_a_leak_or_a_wrong_split_is_refused(bed, rows, words):
    bed.write_text(rows.replace(" ", "\t").replace(",", "\n"))
    with pytest.raises(DataError, match=words):
        check_splits(read_bed(bed), bed)


@pytest.mark.parametrize(
    "rows",
    ["chr1 0 9 train,chr1 9 20 valid,chr2 0 9 test,chr1 20 30 train",
    "chr1 0 9 geneA,chr1 5 20 geneB", "chr1 0 9,chr1 5 20",
     "chr1 0 9 train,chr1 5 20 train,chr2 5 9 test"],
)  # fmt: skip
def test_disjoint_splits_and_other_names_are_sound(bed, rows):
    bed.write_text(rows.replace(" ", "\t").replace(",", "\n"))
    check_splits(read_bed(bed), bed)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("chr1:1,000-2,000", ("chr1", 999, 2000)),
        ("chr1:1-1", ("chr1", 0, 1)),
        ("chr1", ("chr1", 0, 10_000)),
        ("chr2:4000", ("chr2", 3999, 4000)),
        ("chr2:4001-", ("chr2", 4000, 5000)),
        ("HLA-A*01:01", ("HLA-A*01:01", 0, 40)),
        ("HLA-A*01:01:3-5", ("HLA-A*01:01", 2, 5)),
        ("chr6:29-31", ("chr6:29-31", 0, 90)),
        ("{chr6}:29-31", ("chr6", 28, 31)),
        ("{chr6:29-31}:1-2", ("chr6:29-31", 0, 2)),
        ("{chr6}", ("chr6", 0, 130)),
    ],
)
def test_a_region_is_one_based_and_inclusive(text, place):
    assert parse_region(text, CONTIGS) == place


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("chr1:0-5", "positions start at 1"),
        ("chr1:5-4", "ends before it starts"),
        ("chr1:1-10,001", r"past the end of chr1 \(length 10,000\)"),
        ("chr2:5001-", "past the end"),
        ("chr1:1,00-200", "'1,00' is not a number"),
        ("chr1:a-b", "no valid range"),
        ("chr1:-5", "no valid range"),
        ("chr1:99999999999999999999", "past the end of any contig"),
        ("", "no contig of that name"),
    ],
)
def test_a_region_that_cannot_be_meant_is_a_usage_error(text, words):
    with pytest.raises(UsageError, match=words):
        parse_region(text, CONTIGS)
