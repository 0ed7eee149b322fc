"""bigBed as pyBigWig reads it: every row of every query, however many there are."""

import random
from pathlib import Path

import pytest

from genodiff.io.big_bed import BedRow, write_big_bed

bigwig = pytest.importorskip("pyBigWig")
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


@pytest.mark.parametrize(("n_contigs", "n"), [(1, 1), (3, 2_000), (700, 900), (300, 40_000)])
def test_a_query_finds_the_rows_that_lie_in_it(tmp_path: Path, n_contigs: int, n: int):
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
            for start, end in ((0, LENGTH), (0, 1), (4_000, 4_400), (LENGTH - 1, LENGTH)):
                wanted = sorted(
                    (one.start, one.end, "\t".join(map(str, one.more)))
                    for one in rows
                    if one.contig == contig and one.start < end and one.end > start
                )
                assert sorted(file.entries(contig, start, end) or ()) == wanted


def test_nothing_makes_a_file_without_rows(tmp_path: Path):
    path = tmp_path / "x.bb"
    write_big_bed(path, {"chr1": 5}, [], FIELDS, about=("rows", "None"))
    assert int.from_bytes(path.read_bytes()[:4], "little") == 0x8789F2EB
    with bigwig.open(str(path)) as file:
        assert not file.chroms()
