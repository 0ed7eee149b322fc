"""Relatives: built of a list once, with the same bytes whatever the order, processes and kills; a
bad file is one line; strains and the genome itself are told from relatives by their bases.
"""

from pathlib import Path

import numpy as np
import pytest

from genodiff.data.genomes.listing import read_genome_list
from genodiff.errors import DataError
from genodiff.io.faidx import Genome
from genodiff.io.target import cache_dir
from genodiff.memory.tables import SampledTable
from genodiff.runs.related_genome import draw_windows, leave_strains_out, measure_kinship
from genodiff.runs.relatives import (
    build_relatives,
    identify_relatives,
    limit_jobs,
    open_relatives,
    read_genome_text,
)
from genodiff.runs.training_memory import OwnLoci, TrainMemory
from tests.data.many_genomes import LETTERS, change, read_tree, write_list

N = 12_000


def draw_letters(seed: int, n: int = N) -> np.ndarray:
    return LETTERS[np.random.default_rng(seed).integers(0, 4, n)]


def write_fasta(path: Path, **contigs: np.ndarray | str) -> Path:
    letters = {k: v if isinstance(v, str) else v.tobytes().decode() for k, v in contigs.items()}
    path.write_text("".join(f">{name}\n{text}\n" for name, text in letters.items()))
    return path


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def target(tmp_path):
    return write_fasta(tmp_path / "target.fa", chr1=draw_letters(1), chr2=draw_letters(2, 5000))


def write_relatives(folder: Path, **rates: float) -> list[dict[str, str]]:
    """Genomes that differ from the target in these shares of their bases, and the list's rows."""
    rows = []
    for i, (name, rate) in enumerate(rates.items()):
        rng = np.random.default_rng(50 + i)
        parts = {
            f"{name}_{c}": change(draw_letters(c, n), rate, rng) for c, n in ((1, N), (2, 5000))
        }
        write_fasta(folder / f"{name}.fa", **parts)
        rows.append({"path": f"{name}.fa", "name": name, "species": f"s {name}"})
    return rows


def read_memories(cache: Path) -> dict[str, bytes]:
    return read_tree(cache / "memories")


def test_a_list_is_built_once_and_opened_in_the_order_of_names(tmp_path):
    rows = write_relatives(tmp_path, near=0.05, far=0.2)
    listed = read_genome_list(write_list(tmp_path / "l.tsv", rows))
    assert build_relatives(listed, jobs=1) == ["far", "near"]
    assert build_relatives(listed, jobs=1) == []
    relatives = open_relatives(listed)
    assert [one.name for one in relatives] == ["far", "near"]
    assert relatives[0].species == "s_far"
    assert isinstance(relatives[0].memory.table, SampledTable)
    assert relatives[0].told["bases"] == N + 5000
    assert relatives[0].told["fingerprint"] != relatives[1].told["fingerprint"]
    assert identify_relatives(relatives)[0]["name"] == "far"
    assert "folder" not in identify_relatives(relatives)[0]
    assert {one.name for one in cache_dir().iterdir()} == {"memories", "hashes"}
    text = read_genome_text(tmp_path / "far.fa")[0]
    assert np.array_equal(relatives[0].memory.text.planes, text.planes)


@pytest.mark.slow
def test_bytes_depend_on_neither_order_nor_threads(tmp_path, monkeypatch):
    rows = write_relatives(tmp_path, near=0.05, far=0.2)
    trees = []
    for name, order, jobs in (("one", rows, 1), ("two", rows[::-1], 2)):
        monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / name))
        build_relatives(read_genome_list(write_list(tmp_path / f"{name}.tsv", order)), jobs=jobs)
        trees.append(read_memories(tmp_path / name))
    assert trees[0] == trees[1]
    assert len(trees[0]) == 2 * 6


def test_they_are_built_in_a_folder_of_ones_own(tmp_path):
    rows = write_relatives(tmp_path, near=0.05, far=0.2)
    listed = read_genome_list(write_list(tmp_path / "l.tsv", rows))
    there = open_relatives(listed, home=tmp_path / "out", jobs=1)
    assert build_relatives(listed, home=tmp_path / "out") == []
    assert not (cache_dir() / "memories").exists()
    here = open_relatives(listed, jobs=1)
    assert identify_relatives(there) == identify_relatives(here)


def test_a_file_that_changed_is_built_again(tmp_path):
    rows = write_relatives(tmp_path, near=0.05)
    listed = read_genome_list(write_list(tmp_path / "l.tsv", rows))
    first = open_relatives(listed)[0].told["fingerprint"]
    write_fasta(tmp_path / "near.fa", near_1=draw_letters(9))
    assert open_relatives(listed)[0].told["fingerprint"] != first


def test_case_n_and_ambiguity_codes(tmp_path):
    write_fasta(tmp_path / "one.fa", a="acgtNNNNacgtRYacgt" * 20, b="ACGT")
    text, contigs, _ = read_genome_text(tmp_path / "one.fa")
    assert text.n_bases == 12 * 20 + 4
    assert [row[:2] for row in contigs] == [("a", 360), ("b", 4)]
    write_fasta(tmp_path / "two.fa", a="ACGTNNNNACGTNNACGT" * 20, b="ACGT")
    assert read_genome_text(tmp_path / "two.fa")[1] == contigs


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (">a\nACGU\n", "RNA"),
        (">a\nNNNN\n", "holds no base"),
        (">a\nMKLVEQ\n", ""),
        (">a\nACGT\n>a\nACGT\n", "duplicate name"),
        ("", ""),
    ],
)
def test_a_bad_file_is_one_line_and_the_others_are_built(tmp_path, content, said):
    rows = write_relatives(tmp_path, near=0.05)
    (tmp_path / "bad.fa").write_text(content)
    path = write_list(tmp_path / "l.tsv", [{"path": "bad.fa", "name": "bad"}, *rows])
    with pytest.raises(DataError, match="bad") as fault:
        build_relatives(read_genome_list(path), jobs=1)
    assert said in str(fault.value)
    assert fault.value.line == 2
    assert "\n" not in str(fault.value)
    assert any(name.endswith("at.npy") for name in read_memories(cache_dir()))


def test_empty_contigs_are_told_in_one_line(tmp_path, caplog):
    write_fasta(tmp_path / "one.fa", a="", b="", c="ACGT" * 20)
    text, contigs, _ = read_genome_text(tmp_path / "one.fa")
    assert [row[0] for row in contigs] == ["c"]
    assert [s.contig for s in text.sources] == ["c"]
    (record,) = caplog.records
    assert "2 empty contigs" in record.message


def test_the_same_genome_twice_is_refused(tmp_path):
    rows = write_relatives(tmp_path, near=0.05)
    (tmp_path / "copy.fa").write_text((tmp_path / "near.fa").read_text().lower())
    rows.append({"path": "copy.fa", "name": "copy"})
    with pytest.raises(DataError, match="copy and near are the same genome"):
        open_relatives(read_genome_list(write_list(tmp_path / "l.tsv", rows)), jobs=1)


@pytest.mark.slow
def test_strains_are_told_by_their_bases_and_left_out(target, tmp_path):
    rows = write_relatives(tmp_path, strain=0.008, near=0.08, far=0.25)
    listed = read_genome_list(write_list(tmp_path / "l.tsv", rows))
    relatives, genome = open_relatives(listed), Genome(str(target))
    kept, near = leave_strains_out(relatives, genome)
    assert [one.name for one in kept] == ["far", "near"]
    assert [one.strain for one in near] == [False, False, True]
    assert near[0].identity < near[1].identity < 0.97 < near[2].identity
    assert 0.92 < near[1].identity < 0.96
    assert min(one.homologous for one in near[1:]) > 0.98
    assert len(leave_strains_out(relatives, genome, strains=True)[0]) == 3


def test_a_stranger_has_no_identity(target, tmp_path):
    write_fasta(tmp_path / "other.fa", x=draw_letters(77))
    listed = read_genome_list(write_list(tmp_path / "l.tsv", [{"path": "other.fa"}]))
    kinship = measure_kinship(open_relatives(listed)[0], draw_windows(Genome(str(target))))
    assert kinship.homologous < 0.05
    assert not kinship.strain


def test_a_contig_that_is_the_genomes_own_leaves_its_locus_out(target, tmp_path):
    """A planted copy of a whole contig is told by its hash; its own locus is not read."""
    write_fasta(tmp_path / "mixed.fa", x=draw_letters(77, 30_000), planted=draw_letters(2, 5000))
    listed = read_genome_list(write_list(tmp_path / "l.tsv", [{"path": "mixed.fa"}]))
    genome = Genome(str(target))
    (relative,) = open_relatives(listed)
    with pytest.raises(DataError, match="mixed holds chr2 of the genome itself"):
        leave_strains_out([relative], genome)
    loci = OwnLoci(TrainMemory(relative.memory, relative.contigs, relative.told, None), genome)
    without = loci.leave_out(("chr2", 2000, 2500))
    assert without == relative.memory.text.find_interval("planted", 1500, 3000)
    window = draw_windows(genome, 40, 500)[-3:]
    assert relative.memory.recall(window).background.max() < 0.1
    at = (0, relative.memory.text.size)
    assert relative.memory.recall(window, [at] * 3).background.min() > 0.9
    assert loci.leave_out(("chr1", 2000, 2500)) == (0, 0)


def test_windows_are_drawn_from_all_contigs_and_without_n(tmp_path):
    letters = draw_letters(1)
    letters[:6000] = ord("N")
    genome = Genome(
        str(write_fasta(tmp_path / "g.fa", a=letters, b=draw_letters(2, 3000), c="ACG"))
    )
    windows = draw_windows(genome, 50, 500)
    assert 15 < len(windows) < 45
    assert (windows == 4).mean() < 0.1
    assert draw_windows(Genome(str(write_fasta(tmp_path / "s.fa", a="ACGTT"))), 9).shape == (1, 5)


def test_as_many_are_built_at_a_time_as_memory_holds(tmp_path, monkeypatch):
    rows = write_relatives(tmp_path, near=0.05, far=0.2, other=0.1)
    waiting = list(read_genome_list(write_list(tmp_path / "l.tsv", rows)).rows)
    for free, jobs in ((None, 3), (10**9, 3), (100_000, 2), (0, 1)):
        monkeypatch.setattr("genodiff.runs.relatives.read_memory", lambda free=free: (None, free))
        assert limit_jobs(waiting, 3) == jobs
