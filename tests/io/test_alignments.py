"""Alignments in three formats give the same blocks, and a line that is wrong is named."""

from pathlib import Path

import numpy as np

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
