"""Classes of bases by an annotation, fourfold sites, and what `constraint --genes` writes."""

import json

import polars as pl
import pytest
from Bio.Seq import Seq

import genodiff
from genodiff.conservation.base_classes import CLASSES, TOTALS, BaseClasses
from genodiff.errors import DataError
from genodiff.io.faidx import Genome
from genodiff.io.transcripts import read_transcripts
from tests.commands import command
from tests.tiny_run import write_fasta

ROWS = """\
c\tx\tmRNA\t5\t60\t.\t+\t.\tID=a.1
c\tx\texon\t5\t20\t.\t+\t.\tParent=a.1
c\tx\texon\t41\t60\t.\t+\t.\tParent=a.1
c\tx\tCDS\t9\t20\t.\t+\t0\tParent=a.1
c\tx\tCDS\t41\t52\t.\t+\t0\tParent=a.1
c\tx\tmRNA\t71\t82\t.\t-\t.\tID=b.1
c\tx\tCDS\t71\t82\t.\t-\t0\tParent=b.1
"""


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    folder = tmp_path_factory.mktemp("example")
    genodiff.fetch_data("example", out=folder)
    return folder


def test_each_base_has_the_class_of_what_stands_there(tmp_path):
    letters = list("T" * 100)
    letters[8:20] = "ATGGGTGATCTA"  # GGT and CTA are fourfold at their third base
    letters[40:52] = "TCTTGGACATAA"  # TCT and ACA
    letters[70:82] = str(Seq("ATGCGATTCTGA").reverse_complement())  # CGA
    genome = write_fasta(tmp_path / "g.fa", {"c": "".join(letters), "other": "ACGT" * 9})
    (tmp_path / "g.gff3").write_text(ROWS)
    with Genome(genome) as opened:
        found = BaseClasses(tmp_path / "g.gff3", opened)
        names = [CLASSES[i] for i in found.read("c", 0, 100)]
        assert names[:4] == ["intergenic"] * 4
        assert names[4:8] == ["five_prime_UTR"] * 4
        assert names[8:14] == [f"codon_position_{i}" for i in (1, 2, 3)] * 2
        assert names[20:40] == ["intron"] * 20
        assert names[40] == "codon_position_1"
        assert names[52:60] == ["three_prime_UTR"] * 8
        assert names[70:76] == [f"codon_position_{i}" for i in (3, 2, 1)] * 2
        assert set(found.read("other", 0, 36)) == {CLASSES.index("not_annotated")}
        assert found.find_fourfold()["c"].tolist() == [13, 19, 42, 48, 76]


def test_a_base_read_twice_by_slippage_has_two_codon_positions(tmp_path):
    rows = "##gff-version 3\n" + "".join(
        f"c\tx\tCDS\t{place}\t.\t+\t0\tID=cds;Parent=a;exception=ribosomal slippage\n"
        for place in ("11\t19", "19\t30")
    )
    rows = rows.replace("c\tx\tCDS", "c\tx\tmRNA\t11\t30\t.\t+\t.\tID=a\nc\tx\tCDS", 1)
    (tmp_path / "g.gff3").write_text(rows)
    with Genome(
        write_fasta(tmp_path / "g.fa", {"c": "A" * 10 + "ATGGGTGGTGGTGGTGGTAA" + "A" * 9})
    ) as g:
        found = [CLASSES[i] for i in BaseClasses(tmp_path / "g.gff3", g).read("c", 16, 21)]
    codon = [f"codon_position_{i}" for i in (1, 2, 3)]
    assert found == [codon[0], codon[1], "coding_several_frames", codon[1], codon[2]]


def test_the_example_is_a_genome_whose_genes_can_be_read(example):
    with Genome(example / "genome.fa") as genome:
        found = read_transcripts(example / "genes.gff3", genome.contigs, genome)
        assert not [one for one in found.transcripts if one.unknown]
        for one in found.transcripts:
            parts = [genome.fetch(one.contig, a, b).decode() for a, b, _ in one.coding]
            parts = parts if one.strand > 0 else [str(Seq(x).reverse_complement()) for x in parts]
            protein = str(Seq("".join(parts)).translate())
            assert protein[0] + protein[-1] == "M*"
            assert "*" not in protein[:-1]
        fourfold = BaseClasses(example / "genes.gff3", genome).find_fourfold()
        assert sum(map(len, fourfold.values())) > 5000


@pytest.mark.slow
def test_the_example_is_written_once_and_left_as_it_is(tmp_path):
    paths = genodiff.fetch_data("example", out=tmp_path / "e")
    first = [one.read_bytes() for one in paths]
    stamps = [one.stat().st_mtime_ns for one in paths]
    assert genodiff.fetch_data("example", out=tmp_path / "e") == paths
    assert [one.stat().st_mtime_ns for one in paths] == stamps
    assert genodiff.fetch_data("example", out=tmp_path / "f")[0].read_bytes() == first[0]
    paths[0].write_text("mine")
    with pytest.raises(genodiff.errors.UsageError, match="--force"):
        genodiff.fetch_data("example", out=tmp_path / "e")
    assert paths[0].read_text() == "mine"


def test_genes_without_coding_sequence_are_refused_as_neutral(example, tmp_path, capsys):
    (tmp_path / "genes.bed").write_text("chr1\t100\t900\ta\n")
    words = ["constraint", example / "genome.fa", "--relatives", example / "near.fa", "-q"]
    code, _, err = command(
        capsys, *words, "--genes", tmp_path / "genes.bed", "-o", tmp_path / "o", "--plan"
    )
    assert code == 0, err
    with Genome(example / "genome.fa") as genome:
        assert BaseClasses(tmp_path / "genes.bed", genome).find_fourfold() == {}


@pytest.mark.slow
def test_the_table_and_the_page_say_which_classes_are_constrained(example, tmp_path, monkeypatch):
    monkeypatch.setattr("genodiff.runs.related_genome.FIT_WINDOWS", 48)
    given = {"relatives": [example / "near.fa", example / "far.fa"], "formats": ["bigwig"]}
    told = genodiff.constraint(
        example / "genome.fa", **given, genes=example / "genes.gff3", out=tmp_path / "o"
    )
    assert told["neutral"]["source"] == "fourfold sites of genes.gff3"
    rows = {one["class"]: one for one in told["classes"]}
    rate = {name: one["rate"] for name, one in rows.items()}
    assert max(rate["codon_position_1"], rate["codon_position_2"]) < 0.3
    assert 0.7 < rate["codon_position_3"] < 1.1
    assert 0.8 < rate["intergenic"] < 1.2
    assert rate["five_prime_UTR"] < rate["intron"] + 0.1
    bases = {name: one["bases"] for name, one in rows.items()}
    assert sum(n for name, n in bases.items() if name not in TOTALS) == told["bases"] == 100_000
    coding = [rows[f"codon_position_{i}"] for i in (1, 2, 3)]
    assert bases["CDS"] == sum(one["bases"] for one in coding) < bases["exon"]
    mean = sum(one["rate"] * one["scored"] for one in coding) / rows["CDS"]["scored"]
    assert rate["CDS"] == pytest.approx(mean, abs=2e-4)
    assert not any(" " in name for name in rows)
    table = pl.read_csv(tmp_path / "o" / "classes.tsv", separator="\t")
    assert table["class"].to_list() == list(rows)
    page = (tmp_path / "o" / "constraint.html").read_text()
    assert "fourfold sites of genes.gff3" in page
    assert page.count("<svg") == 4
    assert str(tmp_path) not in page + json.dumps(told["files"])
    with pytest.importorskip("pyBigWig").open(str(tmp_path / "o" / "genes.bb")) as file:
        genes = [row for name, n in file.chroms().items() for row in file.entries(name, 0, n)]
    cds = [
        line.split("\t")
        for line in (example / "genes.gff3").read_text().splitlines()
        if "\tCDS\t" in line
    ]
    names = {one[8].partition("Parent=")[2].partition(";")[0] for one in cds}
    assert {more.split("\t")[0] for _, _, more in genes} == names
    thick = [(int(one[3]), int(one[4])) for one in (row[2].split("\t") for row in genes)]
    assert sum(b - a for a, b in thick) > sum(int(one[4]) - int(one[3]) + 1 for one in cds)
    fewer = tmp_path / "few.gff3"
    fewer.write_text("\n".join((example / "genes.gff3").read_text().splitlines()[:7]))
    with pytest.raises(DataError, match="fourfold"):
        genodiff.constraint(
            example / "genome.fa", **given, genes=tmp_path / "few.gff3", out=tmp_path / "p"
        )


@pytest.mark.slow
def test_shards_and_threads_give_the_bytes_of_a_run_with_genes(example, tmp_path, monkeypatch):
    monkeypatch.setattr("genodiff.runs.related_genome.FIT_WINDOWS", 24)
    given = {
        "relatives": [example / "near.fa", example / "far.fa"], "formats": ["wig"], "maf": True,
        "genes": example / "genes.gff3", "region": ["chr1:20,001-50,000"],
    }  # fmt: skip
    parts = [tmp_path / f"{i}.npy" for i in (1, 2)]
    for i, out in enumerate([tmp_path / "whole", *parts]):
        monkeypatch.setattr("genodiff.kernels.library.count_threads", lambda i=i: 1 + i)
        shard = {"shard": f"{i}/2"} if i else {}
        genodiff.constraint(example / "genome.fa", **given, out=out, **shard)
    genodiff.merge(parts, out=tmp_path / "merged")
    files = {one.name for one in (tmp_path / "whole").iterdir()} - {"constraint.json"}
    assert {"classes.tsv", "constraint.html", "elements.bed", "alignment.maf", "rs.wig"} <= files
    for name in files:
        assert (tmp_path / "merged" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
