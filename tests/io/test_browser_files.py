"""Files of a genome browser: bigWig, bedGraph, .2bit as Biopython reads it, bigBed as pyBigWig."""

import random
import re
from pathlib import Path

import numpy as np
import pytest
from Bio import SeqIO

from genodiff.errors import DataError, UsageError
from genodiff.io import two_bit
from genodiff.io.big_bed import BedRow, write_big_bed
from genodiff.io.two_bit import write_two_bit
from genodiff.io.value_tracks import import_bigwig, read_values, write_bigwigs

bigwig = pytest.importorskip("pyBigWig")
CONTIGS = {"chr1": 30, "chr2": 12}
ROWS = [("chr1", 0, 2, 1.5), ("chr1", 5, 6, -2.0), ("chr1", 28, 30, 0.25), ("chr2", 11, 12, 7.0)]


def write_bigwig(path: Path) -> Path:
    with bigwig.open(str(path), "w") as file:
        file.addHeader(list(CONTIGS.items()))
        for contig, start, end, value in ROWS:
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


def write_letters(path: Path, held: dict[str, bytes]) -> dict[str, str]:
    lengths = {name: len(letters) for name, letters in held.items()}
    write_two_bit(path, lengths, lambda name, start, end: held[name][start:end])
    with open(path, "rb") as file:
        return {one.id: str(one.seq) for one in SeqIO.parse(file, "twobit")}


def test_biopython_reads_every_letter_in_its_case(tmp_path):
    rng = np.random.default_rng(1)
    held = {
        f"chr{n}": rng.choice(list(b"ACGTacgtNn"), n).astype(np.uint8).tobytes()
        for n in (1, 2, 3, 4, 5, 63, 64, 65, 1000)
    }
    held |= {"N": b"N" * 17, "plain": b"ACGT" * 9, "HLA:01": b"acgtNNNNACGT"}
    wanted = {name: letters.decode() for name, letters in held.items()}
    assert write_letters(tmp_path / "x.2bit", held) == wanted


def test_a_code_that_is_no_base_is_n(tmp_path):
    assert write_letters(tmp_path / "x.2bit", {"a": b"ACRYgtswKA"}) == {"a": "ACNNgtnnNA"}


def test_blocks_go_on_over_stretches(tmp_path, monkeypatch):
    held = {"a": b"ACGTNNNNNNacgtacgtNNNN", "b": b"nnnnnnnnn"}
    whole = write_letters(tmp_path / "x.2bit", held)
    monkeypatch.setattr(two_bit, "_STEP", 4)
    assert (
        write_letters(tmp_path / "y.2bit", held) == whole == {"a": held["a"].decode(), "b": "n" * 9}
    )
    assert (tmp_path / "x.2bit").read_bytes() == (tmp_path / "y.2bit").read_bytes()


def test_what_the_format_cannot_hold_is_refused(tmp_path, monkeypatch):
    with pytest.raises(DataError, match="255 bytes"):
        write_letters(tmp_path / "x.2bit", {"a" * 256: b"A"})
    monkeypatch.setattr(two_bit._Record, "size", property(lambda _: 1 << 32))
    with pytest.raises(UsageError, match="too large"):
        write_letters(tmp_path / "x.2bit", {"a": b"A"})
    assert not list(tmp_path.iterdir())


FIELDS = ("string name", "uint score", "float lod")
LENGTH = 10_000


def draw_rows(n_contigs: int, n: int) -> list[BedRow]:
    rng = random.Random(n)
    rows = []
    for i in range(n):
        start = rng.randrange(LENGTH - 100)
        end = LENGTH if rng.random() < 0.01 else start + rng.randrange(1, 100)
        more = (f"row_{i}", rng.randrange(1000), f"{rng.random():.3f}")
        rows.append(BedRow(f"contig{rng.randrange(n_contigs)}", start, end, more))
    return rows


@pytest.mark.few(2)
@pytest.mark.parametrize(("n_contigs", "n"), [(1, 1), (3, 2_000), (700, 900), (300, 40_000)])
def test_a_query_finds_the_rows_that_lie_in_it(tmp_path, n_contigs, n):
    contigs = {f"contig{i}": LENGTH for i in range(n_contigs)}
    rows = draw_rows(n_contigs, n)
    path = tmp_path / "x.bb"
    write_big_bed(path, contigs, rows, FIELDS, about=("rows", "Drawn rows"))
    with bigwig.open(str(path)) as file:
        assert file.isBigBed()
        assert set(file.chroms()) == {one.contig for one in rows}
        assert set(file.chroms().values()) == {LENGTH}
        assert b'string name; "name"' in file.SQL()
        for contig in sorted(file.chroms())[:: max(1, n_contigs // 40)]:
            there = [one for one in rows if one.contig == contig]
            for start, end in ((0, LENGTH), (0, 1), (4_000, 4_400), (LENGTH - 1, LENGTH)):
                wanted = sorted(
                    (one.start, one.end, "\t".join(map(str, one.more)))
                    for one in there
                    if one.start < end and one.end > start
                )
                assert sorted(file.entries(contig, start, end) or ()) == wanted


def test_nothing_makes_a_file_without_rows(tmp_path):
    path = tmp_path / "x.bb"
    write_big_bed(path, {"chr1": 5}, [], FIELDS, about=("rows", "None"))
    assert int.from_bytes(path.read_bytes()[:4], "little") == 0x8789F2EB
    with bigwig.open(str(path)) as file:
        assert not file.chroms()
