"""Related genomes with an alignment: the same in every format, and contradictions are named."""

from pathlib import Path

import numpy as np
import pytest

from genodiff.errors import DataError
from genodiff.io.faidx import Genome
from genodiff.memory.aligned import AlignedMemory
from genodiff.runs.relative_lists import list_genomes
from genodiff.runs.relatives import Relative, open_relatives
from tests.planted_alignment import plant, write_chain, write_maf, write_paf
from tests.tiny_run import write_fasta

PLANTED = plant()
TEXTS = {
    "a.maf": write_maf(PLANTED), "two.maf": write_maf(PLANTED, ("tgt.", "rel.")),
    "a.chain": write_chain(PLANTED), "a.paf": write_paf(PLANTED),
    "cs.paf": write_paf(PLANTED, "cs"), "turned.paf": write_paf(PLANTED, "cs", turned=True),
    "names.paf": write_paf(PLANTED).replace("chr", ""),
}  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    write_fasta(tmp_path / "target.fa", PLANTED.target)
    write_fasta(tmp_path / "rel.fa", PLANTED.relative)
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def open_one(given: str) -> Relative:
    with Genome("target.fa") as genome:
        return open_relatives(list_genomes([given]), target=genome)[0]


def test_every_format_gives_the_same_blocks(here):
    opened = {name: open_one(f"rel.fa:{name}") for name in TEXTS}
    first = opened["a.maf"].memory
    assert isinstance(first, AlignedMemory)
    assert len(first.blocks.target) > 10
    assert {*first.blocks.strand.tolist()} == {0, 1}
    assert first.table is None
    for one in opened.values():
        assert isinstance(one.memory, AlignedMemory)
        for a, b in zip(one.memory.blocks, first.blocks, strict=True):
            np.testing.assert_array_equal(a, b)
    prints = {one.told["fingerprint"] for one in opened.values()}
    assert len(prints) == len(TEXTS)
    assert open_one("rel.fa:a.maf").told == opened["a.maf"].told


def test_a_maf_alone_is_its_rows(here):
    alone, both = open_one("two.maf"), open_one("rel.fa:two.maf")
    assert alone.name == "rel"
    windows = np.stack([
        np.searchsorted(np.frombuffer(b"ACGT", np.uint8), np.frombuffer(x[400:600], np.uint8))
        for x in PLANTED.target.values()
    ]).astype(np.uint8)  # fmt: skip
    for one in (alone, both):
        assert sum(len(a) + len(b) for a, b in one.memory.find_all(windows)) >= 2
    rows = [
        one.memory.text.read_codes(d, d + 200)
        for one in (alone, both)
        for d in one.memory.find_all(windows)[0][0].tolist()
    ]
    np.testing.assert_array_equal(rows[: len(rows) // 2], rows[len(rows) // 2 :])
    (here / "three.maf").write_text(TEXTS["two.maf"].replace("\n\n", "\ns oth.x 0 1 + 9 A\n\n"))
    with pytest.raises(DataError, match="columns"):
        list_genomes(["three.maf"])


def _change(name: str, old: str, new: str) -> str:
    assert old in TEXTS[name]
    return TEXTS[name].replace(old, new, 1)


_ROW = TEXTS["a.maf"].splitlines()[3]
_BASES = _ROW.split()[-1]
_SPOILT_BASE = _BASES[:7] + {"A": "C"}.get(_BASES[7], "A") + _BASES[8:]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (TEXTS["a.paf"].replace("A\t", "Z\t", 1), 1, "has no contig 'Z'"),
        (TEXTS["a.paf"].replace("chr1", "chr7", 1), 1, "the target has no contig 'chr7'"),
        (_change("a.paf", "\t3000\t", "\t3001\t"), 1, "chr1 has 3,001 bases here, and 3,000"),
        (_change("a.maf", _BASES, _SPOILT_BASE), 4, f"A:319 is {_SPOILT_BASE[7]} here"),
    ],
)  # fmt: skip
def test_what_contradicts_the_fasta_is_named(here, text, line, what):
    (here / "bad").write_text(text)
    with pytest.raises(DataError) as error:
        open_one("rel.fa:bad")
    assert what in str(error.value)
    assert error.value.line == line


def test_other_genomes_are_refused(here):
    other = plant(9)
    write_fasta(here / "other.fa", other.relative)
    with pytest.raises(DataError, match="in the FASTA of the related genome"):
        open_one("other.fa:a.paf")
    letters = np.random.default_rng(1).permutation(list(PLANTED.relative["A"])).astype(np.uint8)
    write_fasta(here / "mixed.fa", {**PLANTED.relative, "A": letters.tobytes()})
    with pytest.raises(DataError, match="in the FASTA files"):
        open_one("mixed.fa:cs.paf")
    both = {name: letters.tobytes()[: len(x)] for name, x in PLANTED.relative.items()}
    both["B"] = (both["B"] * 3)[: len(PLANTED.relative["B"])]
    write_fasta(here / "mixed.fa", both)
    with pytest.raises(DataError, match="as by chance"):
        open_one("mixed.fa:a.paf")


def test_words_that_name_no_alignment(here):
    with pytest.raises(DataError, match="without the genome that is aligned"):
        list_genomes(["a.paf"])
    with pytest.raises(DataError, match="does not say its species"):
        list_genomes([str(Path("a.maf"))])
    rows = "path\tname\talignment\nrel.fa\trel\ta.paf\n"
    (here / "list.tsv").write_text(rows)
    assert list_genomes(["list.tsv"]).rows[0].alignment == str(here / "a.paf")
    (here / "list.tsv").write_text(rows.replace("a.paf", "b.paf"))
    with pytest.raises(DataError, match=r"the alignment b\.paf is no file"):
        list_genomes(["list.tsv"])
