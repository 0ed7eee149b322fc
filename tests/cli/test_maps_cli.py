"""`genodiff tracks`, `ism` and `dependencies` from outside."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import genodiff
from tests.commands import check_refused, command, succeed
from tests.hub_check import check_hub
from tests.tiny_run import write_fasta

LETTERS = "ACGTTGCANNGATTACAGGCCTATC" * 6
PLACES = ("--region", "chr1:5-20", "--region", "chr1:90-140", "--region", "chr2")
FORMATS = ("bigwig", "bedgraph", "bedgraph.gz", "npz", "parquet", "html")
ALL = tuple(word for one in FORMATS for word in ("--format", one))


@pytest.fixture
def case(here):
    write_fasta(here / "ref.fa", {"chr1": LETTERS, "chr2": "GGATC", "n": "NNNNNN"})
    return here


def words(run: Path, out: str, *more: object, verb: str = "tracks") -> list[object]:
    return [verb, run, "--fasta", "ref.fa", "-o", out, "--threads", 1, *more]


def test_a_folder_has_all_formats_a_hub_and_its_provenance(run, case, capsys):
    told = json.loads(succeed(capsys, *words(run, "o", *PLACES, *ALL, "--json")))
    kept = json.loads((case / "o" / "tracks.json").read_text())
    assert (set(kept), kept["model"]) == (set(told), run.name)
    assert told["intervals"] == [["chr1", 4, 20], ["chr1", 89, 140], ["chr2", 0, 5]]
    assert (told["bases"], told["read"]) == (72, 72 - LETTERS[4:20].count("N")
                                             - LETTERS[89:140].count("N"))  # fmt: skip
    assert {*told["files"], "tracks.json"} == {one.name for one in (case / "o").iterdir()}
    assert not (case / "o.partial").exists()
    check_hub(case / "o")
    model = genodiff.load(run, device="cpu")
    arrays = np.load(case / "o" / "tracks.npz")
    found = model.tracks(Path("ref.fa"), region=["chr1:5-20", "chr1:90-140", "chr2"])
    assert np.array_equal(np.concatenate([one.p for one in found]), arrays["p"], equal_nan=True)
    one = model.tracks("GGATC")
    assert one.p.tobytes() == found[2].p.tobytes()
    assert one.letters == "GGATC"
    page = (case / "o" / "tracks.html").read_text()
    assert "http://" not in page
    assert "https://" not in page


def test_what_was_read_is_what_ism_scores(run, case):
    """A contig that fits into one window is read in the same window by both."""
    model = genodiff.load(run, device="cpu")
    letters = "GGATCATTAC"
    logs = np.log(model.tracks(letters).p.astype(np.float64).T)
    column = ["ACGT".index(one) for one in letters]
    wanted = logs - logs[column, range(len(letters))]
    assert model.ism(letters) == pytest.approx(wanted, abs=1e-5)


@pytest.mark.slow
def test_shards_that_are_not_all_of_this_genome_are_not_merged(run, case, capsys):
    more = (*PLACES, "--every", 4, "--format", "npz")
    succeed(capsys, *words(run, "whole", *more))
    for number in (1, 2, 3):
        words_of = words(run, f"p{number}.npy", *more, "--shard", f"{number}/3")
        succeed(capsys, *words_of)
    told = json.loads(succeed(capsys, "merge", "p3.npy", "p1.npy", "p2.npy", "-o", "o", "--json"))
    assert told["company"] == json.loads((case / "whole" / "tracks.json").read_text())["company"]
    assert told["company"]["sites"] > 0
    three = ("p1.npy", "p2.npy", "p3.npy")
    (case / "o" / "notes.txt").write_text("mine")
    assert command(capsys, "merge", *three, "-o", "o")[0] == 2
    with (case / "ref.fa").open("a") as file:
        file.write(">more\nA\n")
    check_refused(capsys, ["merge", *three, "-o", "o2"], 3, "not the genome")
    np.save("p2.npy", np.zeros((3, 4), np.float32))
    check_refused(capsys, ["merge", *three, "-o", "o2"], 3, "p2.npy")


def test_the_hub_of_a_named_genome_brings_no_sequence(run, case, capsys):
    more = ("--region", "chr2", "--genome", "sacCer3", "--email", "me@lab.org")
    succeed(capsys, *words(run, "o", *more))
    check_hub(case / "o")
    assert (case / "o" / "genomes.txt").read_text() == "genome sacCer3\ntrackDb trackDb.txt\n"
    assert "email me@lab.org\n" in (case / "o" / "hub.txt").read_text()
    assert not list((case / "o").glob("*.2bit"))


def test_a_hub_has_the_names_of_its_genome_and_no_folder_of_the_machine(run, case, capsys):
    (case / "ref.fa").write_text(">MT\nGGATCA\n>1\nGGATC\n>GL000195.1\nACGTACGT\n")
    more = ("--genome", "hg38", "--format", "bigwig", "--format", "html", "--format", "bedgraph")
    code, out, err = command(capsys, *words(run, "o", *more, "--json"))
    assert code == 0, err
    assert "'GL000195.1' could not be matched to a contig of hg38" in err
    check_hub(case / "o")
    assert (case / "o" / "chrom.sizes").read_text() == "GL000195.1\t8\nchr1\t5\nchrM\t6\n"
    rows = (case / "o" / "p_A.bedGraph").read_text().splitlines()
    assert [row.split("\t")[0] for row in rows] == ["GL000195.1"] * 8 + ["chr1"] * 5 + ["chrM"] * 6
    assert json.loads(out)["names"] == {"1": "chr1", "MT": "chrM"}
    for one in (case / "o").iterdir():
        assert str(run.parent).encode() not in one.read_bytes(), one.name
        assert str(case).encode() not in one.read_bytes(), one.name


@pytest.mark.slow
def test_a_region_is_a_picture_with_its_genes(run, case, capsys):
    (case / "genes.gff3").write_text("chr1\tx\tgene\t3\t9\t.\t-\t.\tID=a;Name=NEAR\n")
    pictures = ("svg", "png", "pdf", "html")
    more = [word for one in pictures for word in ("--format", one)]
    place = ("--region", "chr1:5-20", "--genes", "genes.gff3")
    succeed(capsys, *words(run, "o", *place, *more))
    assert {one.name for one in (case / "o").iterdir()} == {
        "tracks.json", *(f"tracks.{one}" for one in pictures)
    }  # fmt: skip
    assert "NEAR ←" in (case / "o" / "tracks.svg").read_text()
    page = (case / "o" / "tracks.html").read_text()
    genes = json.loads(page.split('id="data">')[1].split("</script>")[0])["regions"][0]["genes"]
    # bases 3 to 9 of the contig; the region begins at base 5
    assert genes == [
        {"start": -2, "end": 5, "strand": -1, "name": "NEAR", "exons": [[-2, 5]], "coding": []}
    ]
    assert (case / "o" / "tracks.png").read_bytes().startswith(b"\x89PNG")
    assert (case / "o" / "tracks.pdf").read_bytes().startswith(b"%PDF")


def test_a_plan_counts(run, case, capsys, monkeypatch):
    monkeypatch.setattr("genodiff.jobs.machine.time_steps", lambda _: 2.0)
    told = json.loads(succeed(capsys, *words(run, "o", "--plan", "--json")))
    assert (told["bases"], told["evaluations"]) == (161, 161)
    assert told["journal_bytes"] == 16 * 161
    assert told["seconds"] == 2 * 161
    succeed(capsys, *words(run, "o", "--plan"))
    out = succeed(capsys, *words(run, "o", "--plan", "--json", "--every", 8))
    assert json.loads(out)["evaluations"] < 161
    succeed(capsys, *words(run, "o"))
    assert sorted(told["files"]) == sorted(f"o/{one.name}" for one in (case / "o").iterdir())


def test_without_pybigwig_a_line_says_what_to_install(run, case, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyBigWig", None)
    place = ("--region", "chr2")
    check_refused(capsys, words(run, "o", *place), 5, "genodiff[tracks]")
    succeed(capsys, *words(run, "o", *place, "--format", "bedgraph"))


@pytest.mark.few(1)
@pytest.mark.parametrize("verb", ["ism", "dependencies"])
def test_every_format_of_a_map_has_the_same_numbers(verb, run, case, capsys):
    place = ("--region", "chr1:5-13")
    (case / "genes.bed").write_text("chr1\t0\t9\tNEAR\nchr1\t30\t40\tFAR\n")
    for ending in ("tsv", "parquet", "npz", "svg", "png", "pdf", "html"):
        more = ("--genes", "genes.bed") if ending in ("svg", "png", "pdf", "html") else ()
        code, out, err = command(capsys, *words(run, f"o.{ending}", *place, *more, verb=verb))
        assert (code, out) == (0, ""), err
        assert not (case / f"o.{ending}.partial").exists()
        told = json.loads((case / f"o.{ending}.json").read_text())
        assert (told["scored"], told["regions"][0]["start"]) == (7, 4)
    code, out, err = command(capsys, *words(run, "-", *place, verb=verb))
    assert (code, out) == (0, (case / "o.tsv").read_text()), err
    frame, table = pl.read_parquet("o.parquet"), pl.read_csv("o.tsv", separator="\t")
    arrays = np.load("o.npz")
    assert frame.height == table.height == (21 if verb == "ism" else 42)
    assert arrays["one_hot"][0].sum() == 7
    value = "score" if verb == "ism" else "dependency"
    assert table[value].to_numpy() == pytest.approx(frame[value].to_numpy(), abs=1e-6)
    for row in frame.iter_rows(named=True):
        if verb == "ism":
            at = (0, "ACGT".index(row["alt"]), row["pos"] - 5)
            assert LETTERS[row["pos"] - 1] == row["ref"]
        else:
            at = (0, row["source"] - 5, row["target"] - 5)
            change = arrays["change"][0, at[1], "ACGT".index(row["alt"]), at[2]]
            assert abs(change) == row["dependency"]
            assert row["change"] == change
        assert arrays[value][at] == row[value]
    page = (case / "o.html").read_text()
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert str(run) not in page
    assert (case / "o.svg").read_text().startswith("<svg xmlns=")
    assert (case / "o.png").read_bytes().startswith(b"\x89PNG")
    assert (case / "o.pdf").read_bytes().startswith(b"%PDF")
    for text in (page, (case / "o.svg").read_text()):
        assert ("NEAR" in text, "FAR" in text) == (True, False)


def test_a_plan_of_maps_counts(run, case, capsys, monkeypatch):
    monkeypatch.setattr("genodiff.jobs.machine.time_steps", lambda _: 2.0)
    out = succeed(capsys, *words(run, "o.tsv", "--plan", "--json", verb="ism"))
    assert json.loads(out)["evaluations"] == 150 - 12 + 5
    assert json.loads(out)["seconds"] == 2 * (150 - 12 + 5)
    more = ("--plan", "--json", "--region", "chr2")
    told = json.loads(succeed(capsys, *words(run, "o.tsv", *more, verb="dependencies")))
    assert told["exact_evaluations"] == 5 + 3 * 5 * 4
    assert told["seconds"] == 2 * told["evaluations"]
    out = succeed(capsys, *words(run, "o.tsv", "--plan", verb="ism"))
    assert re.search(r"^time +about 5 min on cpu$", out, re.M), out  # 286 s


def test_python_gives_the_arrays_of_a_map(run, case, capsys):
    model = genodiff.load(run, device="cpu")
    succeed(capsys, *words(run, "o.npz", "--region", "chr2", verb="dependencies"))
    arrays = np.load("o.npz")
    (found,) = model.dependencies(Path("ref.fa"), region=["chr2"])
    assert np.array_equal(found.dependency, arrays["dependency"][0])
    assert model.dependencies("GGATC").dependency.shape == (5, 5)
    assert model.dependencies("GGATC", exact=True).dependency == pytest.approx(
        found.dependency, abs=1e-5
    )
