"""Relatives, and the memory of a store: built once, told from the genome by bases, fitted once."""

import json
from pathlib import Path

import numpy as np
import pytest

from genodiff.data.dna_store import build_dna_store
from genodiff.data.genomes.listing import read_genome_list
from genodiff.data.recipe import load_recipe
from genodiff.errors import DataError
from genodiff.io.faidx import Genome
from genodiff.io.target import cache_dir
from genodiff.memory import relatives_fit
from genodiff.memory.tables import SampledTable
from genodiff.memory.text import NONE
from genodiff.runs import training_memory
from genodiff.runs.related_genome import (
    draw_windows,
    leave_strains_out,
    measure_kinship,
    relate_genome,
)
from genodiff.runs.relatives import (
    build_relatives,
    identify_relatives,
    limit_jobs,
    open_relatives,
    read_genome_text,
)
from genodiff.runs.training_memory import (
    OwnLoci,
    TrainMemory,
    list_stretches,
    open_split_memory,
)
from tests.conservation.constraint_world import write_world
from tests.data.genomes import LETTERS, change, read_tree, write_contigs, write_list

N = 12_000


def draw_letters(seed: int, n: int = N) -> np.ndarray:
    return LETTERS[np.random.default_rng(seed).integers(0, 4, n)]


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def target(tmp_path):
    return write_contigs(tmp_path / "target.fa", chr1=draw_letters(1), chr2=draw_letters(2, 5000))


def write_relatives(folder: Path, **rates: float) -> list[dict[str, str]]:
    """Genomes that differ from the target in these shares of their bases, and the list's rows."""
    rows = []
    for i, (name, rate) in enumerate(rates.items()):
        rng = np.random.default_rng(50 + i)
        parts = {
            f"{name}_{c}": change(draw_letters(c, n), rate, rng) for c, n in ((1, N), (2, 5000))
        }
        write_contigs(folder / f"{name}.fa", **parts)
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
    write_contigs(tmp_path / "near.fa", near_1=draw_letters(9))
    assert open_relatives(listed)[0].told["fingerprint"] != first


def test_case_n_and_ambiguity_codes(tmp_path):
    write_contigs(tmp_path / "one.fa", a="acgtNNNNacgtRYacgt" * 20, b="ACGT")
    text, contigs, _ = read_genome_text(tmp_path / "one.fa")
    assert text.n_bases == 12 * 20 + 4
    assert [row[:2] for row in contigs] == [("a", 360), ("b", 4)]
    write_contigs(tmp_path / "two.fa", a="ACGTNNNNACGTNNACGT" * 20, b="ACGT")
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
    write_contigs(tmp_path / "one.fa", a="", b="", c="ACGT" * 20)
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
    write_contigs(tmp_path / "other.fa", x=draw_letters(77))
    listed = read_genome_list(write_list(tmp_path / "l.tsv", [{"path": "other.fa"}]))
    kinship = measure_kinship(open_relatives(listed)[0], draw_windows(Genome(str(target))))
    assert kinship.homologous < 0.05
    assert not kinship.strain


def test_a_contig_that_is_the_genomes_own_leaves_its_locus_out(target, tmp_path):
    """A planted copy of a whole contig is told by its hash; its own locus is not read."""
    write_contigs(tmp_path / "mixed.fa", x=draw_letters(77, 30_000), planted=draw_letters(2, 5000))
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
        str(write_contigs(tmp_path / "g.fa", a=letters, b=draw_letters(2, 3000), c="ACG"))
    )
    windows = draw_windows(genome, 50, 500)
    assert 15 < len(windows) < 45
    assert (windows == 4).mean() < 0.1
    assert draw_windows(Genome(str(write_contigs(tmp_path / "s.fa", a="ACGTT"))), 9).shape == (1, 5)


def test_as_many_are_built_at_a_time_as_memory_holds(tmp_path, monkeypatch):
    rows = write_relatives(tmp_path, near=0.05, far=0.2, other=0.1)
    waiting = list(read_genome_list(write_list(tmp_path / "l.tsv", rows)).rows)
    for free, jobs in ((None, 3), (10**9, 3), (100_000, 2), (0, 1)):
        monkeypatch.setattr("genodiff.runs.relatives.read_memory", lambda free=free: (None, free))
        assert limit_jobs(waiting, 3) == jobs


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setattr("genodiff.runs.related_genome.FIT_WINDOWS", 8)
    return write_world(tmp_path)


@pytest.fixture
def fitted(monkeypatch):
    """The genomes that were fitted."""
    found, fit = [], relatives_fit.fit_genome

    def count(memory, *given, **more):
        found.append(memory.text.sources[0].contig)
        return fit(memory, *given, **more)

    monkeypatch.setattr(relatives_fit, "fit_genome", count)
    return found


@pytest.mark.few(1)
@pytest.mark.parametrize("first", ["one", "both"])
def test_a_genome_is_fitted_once_alone_and_among_others(world, fitted, first):
    genome, one = Genome(world.genome), world.relatives[1:]
    orders = {"one": (one, world.relatives), "both": (world.relatives, one)}
    told = {}
    for given in orders[first]:
        found = relate_genome(genome, given).relatives.genomes
        told[len(given)] = {g.memory.text.sources[0].contig: g.numbers for g in found}
    assert sorted(fitted) == ["far_1", "near_1"]
    assert told[2]["far_1"] == told[1]["far_1"] != told[2]["near_1"]


@pytest.mark.slow
def test_a_kept_fit_of_a_far_genome_by_the_ordinary_search_is_not_used(world, fitted, tmp_path):
    genome, one = Genome(world.genome), world.relatives[1:]
    said = relate_genome(genome, one)
    (path,) = [
        p for p in (tmp_path / "cache/relatives").glob("*.json") if "columns" in p.read_text()
    ]
    numbers = json.loads(path.read_text())
    for is_far in (True, False):
        own = {**numbers["genomes"][0], "divergence": [0.3] * 7, "far": is_far}
        path.write_text(json.dumps({**numbers, "genomes": [own]}))
        again = relate_genome(genome, one)
        assert (again.digest == said.digest) == (not is_far)
    assert fitted == ["far_1"]


def test_a_store_s_memory_is_built_once_and_refused_elsewhere(fresh_cache, monkeypatch):
    store = build_dna_store(load_recipe("toy"))
    memory, _ = open_split_memory(store, k=6)
    name, start, codes = list_stretches(store, "train")[0]
    window = codes[100:400].copy()
    window[50:150] = NONE
    found = memory.recall(window[None])
    assert found.copy[0, 50:150].argmax(-1).tolist() == codes[150:250].tolist()
    own = memory.exclude(name, start + 100, start + 400)
    assert own == memory.text.find_interval(name, start, start + 700)
    assert memory.recall(window[None], [own]).background.min() > 0.5

    monkeypatch.setattr(training_memory, "write_memory", pytest.fail)
    again, _ = open_split_memory(store, k=6)
    assert np.array_equal(again.recall(window[None]).copy, found.copy)
    (place,) = (p for p in (fresh_cache / "memories").iterdir() if p.is_dir())
    with pytest.raises(DataError, match="memory of other data"):
        open_split_memory(store, "valid", k=6, folder=place)
