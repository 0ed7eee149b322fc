"""Values of bigWig and bedGraph stand at their bases; a faulty file is one line."""

import re
from pathlib import Path

import numpy as np
import pytest

from genodiff.errors import DataError
from genodiff.io.value_tracks import import_bigwig, read_values, write_bigwigs

bigwig = pytest.importorskip("pyBigWig")
CONTIGS = {"chr1": 30, "chr2": 12}
ROWS = [("chr1", 0, 2, 1.5), ("chr1", 5, 6, -2.0), ("chr1", 28, 30, 0.25), ("chr2", 11, 12, 7.0)]


def write_bigwig(path: Path, lengths: dict[str, int] = CONTIGS) -> Path:
    with bigwig.open(str(path), "w") as file:
        file.addHeader(list(lengths.items()))
        for contig, start, end, value in ROWS:
            if contig in lengths:
                file.addEntries([contig], [start], ends=[end], values=[value])
    return path


def test_both_formats_have_each_value_at_its_base_and_nan_elsewhere(tmp_path):
    text = "".join("\t".join(map(str, row)) + "\n" for row in ROWS)
    (tmp_path / "a.bedGraph").write_text("track type=bedGraph\n" + text)
    # Its name does not say what it is.
    for path in (tmp_path / "a.bedGraph", write_bigwig(tmp_path / "values")):
        found = read_values(path, CONTIGS)
        for contig, length in CONTIGS.items():
            wanted = np.full(length, np.nan, np.float32)
            for name, start, end, value in ROWS:
                if name == contig:
                    wanted[start:end] = value
            np.testing.assert_array_equal(found[contig], wanted)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("chr1\t0\t31\t1\n", "line 1: the end 31 is past the end of chr1"),
        ("chr1\t0\t3\t1\nchr1\t2\t4\t2\n", "line 2: base 2 of chr1 (0-based) has two values"),
        ("chr1\t0\t3\tnan\n", "the value 'nan' is not a finite number"),
        ("chr1\t0\t3\tx\t0\t+\n", "has 6 columns; bedGraph has 4"),
        ("chr1\t0\t0\t1\n", "an empty track"),
        ("", "an empty track"),
    ],
)
def test_a_faulty_bedgraph_is_one_line(tmp_path, text, said):
    (tmp_path / "a.bedGraph").write_text(text)
    with pytest.raises(DataError, match=re.escape(said)):
        read_values(tmp_path / "a.bedGraph", CONTIGS)


def test_a_bigwig_of_another_genome_an_empty_and_a_cut_one_are_one_line(tmp_path):
    whole = write_bigwig(tmp_path / "a.bw")
    empty = tmp_path / "empty.bw"
    with bigwig.open(str(empty), "w") as file:
        file.addHeader([("chr1", 30)])
    cut = tmp_path / "cut.bw"
    cut.write_bytes(whole.read_bytes()[:60])
    for path, contigs, said in (
        (whole, {"chr1": 31}, "chr1 has 30 bases, and 31 in the FASTA"),
        (empty, CONTIGS, "an empty track"),
        (cut, CONTIGS, "cannot be read as bigWig"),
    ):
        with pytest.raises(DataError, match=re.escape(said)):
            read_values(path, contigs)


@pytest.mark.parametrize("many", [2, 3])
def test_a_file_of_many_contigs_has_no_zoom_levels_and_the_same_values(tmp_path, monkeypatch, many):
    """pyBigWig looks up each contig from the first on: zoom levels of 50,000 took minutes."""
    monkeypatch.setattr("genodiff.io.value_tracks._MANY", many)
    contigs = {name: 5_000 for name in "abc"}
    drawn = np.random.default_rng(1).random((3, 5_000), np.float32)
    with write_bigwigs(tmp_path, ["x"], contigs) as add:
        for name, values in zip(contigs, drawn, strict=True):
            add("x", name, 0, values)
    with import_bigwig().open(str(tmp_path / "x.bw")) as file:
        assert (file.header()["nLevels"] == 0) == (many < 3)
        assert file.header()["nBasesCovered"] == 15_000
        for name, values in zip(contigs, drawn, strict=True):
            np.testing.assert_array_equal(file.values(name, 0, 5_000), values)
