"""A file with the genomes of several species is never read as one without a word."""

import logging
from pathlib import Path

import numpy as np
import pytest

from genodiff.data.genomes.listing import are_alike, find_several, name_species
from genodiff.errors import DataError
from genodiff.io.faidx import Genome
from genodiff.runs.related_genome import leave_strains_out
from genodiff.runs.relative_lists import list_genomes
from genodiff.runs.relatives import identify_relatives, open_relatives, read_genome_text
from tests.tiny_run import write_fasta

LETTERS = np.frombuffer(b"ACGT", np.uint8)
NAMES = ["Homo sapiens mitochondrion", "Pan paniscus mitochondrion", "Homo sapiens chromosome X"]


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))


def draw(seed: int, n: int = 2000) -> str:
    return LETTERS[np.random.default_rng(seed).integers(0, 4, n)].tobytes().decode()


@pytest.fixture
def several(tmp_path):
    rows = {f"NC_{i}.1 {name}": draw(i, 2000 + 900 * i) for i, name in enumerate(NAMES)}
    return write_fasta(tmp_path / "several.fa.gz", rows)


@pytest.mark.parametrize(
    ("name", "about", "species"),
    [
        ("NC_012920.1", "Homo sapiens mitochondrion, complete genome", "Homo_sapiens"),
        ("x", "UNVERIFIED: Mus musculus mitochondrion", "Mus_musculus"),
        ("x", "[organism=Zea mays] [location=plastid]", "Zea_mays"),
        ("sp", "x OS=Pan troglodytes OX=9598", "Pan_troglodytes"),
        ("HG002#1#chr1", "", "HG002#1"),
        ("chr1", "", ""), ("x", "Chromosome one", ""), ("x", "Scaffold number 3", ""),
        ("x", "AC:CM000663.2 gi:568336023", ""), ("x", "length=500 depth=3x", ""),
        ("1", "dna:chromosome chromosome:GRCh38:1:1:9:1 REF", ""),
    ],
)  # fmt: skip
def test_a_header_names_a_species(name, about, species):
    assert name_species(name, about) == species


def test_one_species_is_not_several():
    own = {f"c{i}": f"Saccharomyces cerevisiae S288C chromosome {i}" for i in range(5)}
    assert find_several(own) == []
    assert find_several({**own, "x": "Escherichia coli phage"}) == [
        "Saccharomyces_cerevisiae", "Escherichia_coli",
    ]  # fmt: skip
    assert find_several({"a": "", "b": "", "c": "Homo sapiens", "d": ""}) == []


def test_several_species_as_one_relative_are_refused_with_the_spelling_that_splits(several):
    for _ in range(2):  # nothing is kept that would let it pass the second time
        with pytest.raises(DataError, match=r"2 species \(Homo_sapiens, Pan_paniscus\).* split:/"):
            open_relatives(list_genomes([several]))


def test_split_gives_what_files_of_their_own_give(several, tmp_path):
    both = open_relatives(list_genomes([f"split:{several}"]))
    assert [one.name for one in both] == ["Homo_sapiens", "Pan_paniscus"]
    human = {f"c{i}": draw(i, 2000 + 900 * i) for i in (0, 2)}
    files = [
        write_fasta(tmp_path / "h.fa", human),
        write_fasta(tmp_path / "p.fa", {"m": draw(1, 2900)}),
    ]
    for one, other in zip(both, open_relatives(list_genomes(files)), strict=True):
        assert one.told["bases"] == other.told["bases"]
        letters = [sorted(digest for _, _, digest in read_genome_text(*args)[1]) for args in (
            (several, one.told["records"]), (Path(other.told["source"]),),
        )]  # fmt: skip
        assert letters[0] == letters[1]
    again = open_relatives(list_genomes([f"split:{several}"]))
    assert identify_relatives(again) == identify_relatives(both)


def test_whole_is_one_genome(several):
    (one,) = open_relatives(list_genomes([f"whole:{several}"]))
    assert one.told["bases"] == 2000 + 2900 + 3800
    with pytest.raises(DataError, match="looks like"):
        open_relatives(list_genomes([several]))


def test_a_list_names_the_records_of_a_genome(several, tmp_path):
    listed = tmp_path / "list.tsv"
    listed.write_text(f"path\tname\trecords\n{several}\tpan\tPan paniscus\n{several}\tx\tNC_0.1\n")
    opened = open_relatives(list_genomes([listed]))
    assert [(one.name, one.told["bases"]) for one in opened] == [("pan", 2900), ("x", 2000)]
    listed.write_text(f"path\trecords\n{several}\tGallus gallus\n")
    with pytest.raises(DataError, match="holds no base of Gallus_gallus"):
        open_relatives(list_genomes([listed]))


def test_records_of_one_length_are_spoken_of(tmp_path, caplog):
    rows = {f"r{i}": draw(i, 2000 + i) for i in range(4)}
    path = write_fasta(tmp_path / "many.fa", rows)
    for _ in range(2):
        caplog.clear()
        open_relatives(list_genomes([path]))
        assert "its 4 records have about one length" in caplog.text
    caplog.clear()
    assert len(open_relatives(list_genomes([f"split:{path}"]))) == 4
    open_relatives(list_genomes([f"whole:{path}"]))
    assert "about one length" not in caplog.text
    assert not are_alike([100, 100])
    assert not are_alike([100, 200, 300])


def test_the_genome_itself_and_repeats_in_a_file_of_many_are_left_out(tmp_path, caplog):
    own, near = draw(1), draw(2)
    genome = tmp_path / "own.fa"
    genome.write_text(f">chr1\n{own}\n")
    path = write_fasta(tmp_path / "db.fa", {"self": own, "a": near, "b": near, "c": draw(3)})
    with caplog.at_level(logging.INFO), Genome(genome) as opened:
        found = open_relatives(list_genomes([f"split:{path}"]))
        kept, _ = leave_strains_out(found, opened)
    assert [one.name for one in kept] == ["a", "c"]
    assert "db.fa: 4 genomes" in caplog.text
    assert "b is left out: the same bases as a" in caplog.text
    assert "self is left out: the relative self holds chr1 of the genome itself" in caplog.text


def test_one_genome_is_nothing_to_split(tmp_path):
    path = write_fasta(tmp_path / "one.fa", {"a": draw(1)})
    with pytest.raises(DataError, match="holds one genome"):
        list_genomes([f"split:{path}"])
