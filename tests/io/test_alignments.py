"""Alignments in three formats give the same blocks, and a line that is wrong is named."""

from pathlib import Path

import numpy as np
import pytest

from genodiff.errors import DataError
from genodiff.io.alignments import ALIGNMENT_FORMATS, find_alignment_format, read_alignments
from tests.planted_alignment import plant, write_chain, write_maf, write_paf

PLANTED = plant()
WRITTEN = {
    "maf": write_maf(PLANTED), "chain": write_chain(PLANTED), "paf": write_paf(PLANTED),
    "cs": write_paf(PLANTED, "cs"),
}  # fmt: skip


def put(folder: Path, text: str, name: str = "x") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_all_formats_say_the_same(tmp_path):
    found = {k: list(read_alignments(put(tmp_path, v, k))) for k, v in WRITTEN.items()}
    assert set(ALIGNMENT_FORMATS) <= set(WRITTEN)
    for pairs in found.values():
        assert len(pairs) == 2
        for one, other in zip(pairs, found["maf"], strict=True):
            assert (one.top, one.low) == (other.top, other.low)
            np.testing.assert_array_equal(one.blocks, other.blocks)
    assert any(len(one.blocks) > 5 for one in found["maf"])


def test_the_query_may_be_the_target(tmp_path):
    there = list(read_alignments(put(tmp_path, write_paf(PLANTED, "cs"))))
    back = list(read_alignments(put(tmp_path, write_paf(PLANTED, "cs", turned=True))))
    for one, other in zip(there, back, strict=True):
        turned = other.exchange()
        assert {one.top.name, one.low.name} == {turned.top.name, turned.low.name}
        assert one.blocks[:, 2].sum() == turned.blocks[:, 2].sum()


def test_the_format_is_told_by_the_content(tmp_path):
    for name, text in WRITTEN.items():
        path = put(tmp_path, f"# a comment\n{text}" if name != "maf" else text)
        assert find_alignment_format(path) == {"cs": "paf"}.get(name, name)
    assert find_alignment_format(put(tmp_path, ">a\nACGT\n")) is None
    assert find_alignment_format(put(tmp_path, "")) is None


def _spoil(name: str, old: str, new: str) -> str:
    assert old in WRITTEN[name]
    return WRITTEN[name].replace(old, new, 1)


_PAF = WRITTEN["paf"].splitlines()[0].split("\t")
_MAF_ROW = WRITTEN["maf"].splitlines()[2]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (_spoil("maf", _MAF_ROW, _MAF_ROW[:-1]), 3, "says that it has"),
        (_spoil("maf", _MAF_ROW, _MAF_ROW + "-"), 4, "columns"),
        (_spoil("maf", _MAF_ROW, _MAF_ROW.replace(" + ", " * ")), 3, "is no strand"),
        (_spoil("maf", _MAF_ROW, "z what"), 3, "is no line of MAF"),
        (_spoil("chain", " 3000 + 200", " 300 + 200"), 1, "is not within chr1"),
        (WRITTEN["chain"][: WRITTEN["chain"].rindex("\t")], None, "chain"),
        (_spoil("chain", "\t0\t", "\t1\t"), 1, "its blocks end at"),
        (_spoil("paf", "cg:Z:", "xx:Z:"), 1, "neither cg nor cs"),
        (_spoil("paf", "cg:Z:", "cg:Z:1M"), 1, "its gaps end at"),
        (_spoil("paf", "cg:Z:", "cg:Z:?"), 1, "its CIGAR cannot be read"),
        (_spoil("cs", "cs:Z:", "cs:Z:?"), 1, "its cs tag cannot be read"),
        ("\t".join([*_PAF[:6], "300", *_PAF[7:]]), 1, "is not within chr1"),
        ("\t".join(_PAF[:9]) + "\n", 1, "9 columns"),
        (">a\nACGT\n", 1, "FASTA"),
        ("hello\n", None, "is no alignment"),
        ("##maf version=1\n", None, "holds no alignment"),
    ],
)  # fmt: skip
def test_a_wrong_line_is_named(tmp_path, text, line, what):
    with pytest.raises(DataError) as error:
        list(read_alignments(put(tmp_path, text)))
    assert what in str(error.value)
    assert line is None or error.value.line == line
