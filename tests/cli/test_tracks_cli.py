"""`genodiff tracks` from outside."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import genodiff
from tests.commands import command, succeed
from tests.hub_check import check_hub

LETTERS = "ACGTTGCANNGATTACAGGCCTATC" * 6
PLACES = ("--region", "chr1:5-20", "--region", "chr1:90-140", "--region", "chr2")
FORMATS = ("bigwig", "bedgraph", "bedgraph.gz", "npz", "parquet", "html")
ALL = tuple(word for one in FORMATS for word in ("--format", one))


@pytest.fixture
def case(tmp_path, monkeypatch):
    (tmp_path / "ref.fa").write_text(f">chr1\n{LETTERS}\n>chr2\nGGATC\n>n\nNNNNNN\n")
    (tmp_path / "empty.bed").write_text("# nothing\n")
    (tmp_path / "far.bed").write_text("chr1\t10\t2000\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words(run: Path, out: str, *more: object) -> list[object]:
    return ["tracks", run, "--fasta", "ref.fa", "-o", out, "--threads", 1, *more]


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
    code, _, err = command(capsys, "merge", *three, "-o", "o2")
    assert (code, "not the genome" in err) == (3, True)
    np.save("p2.npy", np.zeros((3, 4), np.float32))
    assert command(capsys, "merge", *three, "-o", "o2")[0] == 3
    assert not (case / "o2").exists()


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


def test_a_plan_counts_and_writes_nothing(run, case, capsys, monkeypatch):
    monkeypatch.setattr("genodiff.jobs.machine.time_steps", lambda _: 2.0)
    before = sorted(case.iterdir())
    told = json.loads(succeed(capsys, *words(run, "o", "--plan", "--json")))
    assert (told["bases"], told["evaluations"]) == (161, 161)
    assert told["journal_bytes"] == 16 * 161
    assert told["seconds"] == 2 * 161
    succeed(capsys, *words(run, "o", "--plan"))
    out = succeed(capsys, *words(run, "o", "--plan", "--json", "--every", 8))
    assert json.loads(out)["evaluations"] < 161
    assert sorted(case.iterdir()) == before
    succeed(capsys, *words(run, "o"))
    assert sorted(told["files"]) == sorted(f"o/{one.name}" for one in (case / "o").iterdir())


def test_without_pybigwig_a_line_says_what_to_install(run, case, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyBigWig", None)
    place = ("--region", "chr2")
    code, _, err = command(capsys, *words(run, "o", *place))
    assert (code, err.count("\n")) == (5, 1)
    assert "genodiff[tracks]" in err
    assert not (case / "o").exists()
    assert not (case / "o.partial").exists()
    succeed(capsys, *words(run, "o", *place, "--format", "bedgraph"))
