"""`genodiff scorecard` and `report --samples`: samples beside the real sequence."""

import json
from pathlib import Path

import pytest
from tiny_run import genome_text

import genodiff
from genodiff.errors import DataError, UsageError
from tests.commands import check_refused, command, succeed


@pytest.fixture
def samples(run, here):
    genodiff.sample(run, out=here / "new.fa", n=30, length=32, steps=4, device="cpu")
    return here / "new.fa"


def test_samples_stand_beside_the_split_of_their_run(run, samples, capsys):
    found = genodiff.scorecard(samples, run=run, split="test")
    assert list(found["sets"]) == ["samples", "real", "Markov 1", "Markov 5", "Markov 8"]
    assert (found["samples"], found["length"]) == (30, 32)
    assert 2 <= found["compared"] <= 30
    assert all(part["sequences"] == found["compared"] for part in found["sets"].values())
    assert found["sets"]["samples"]["match"]["max"] < 32  # an untrained network copies nothing
    assert found["train_bases"] > 8_000
    code, out, _ = command(capsys, "scorecard", samples, "--model", run, "--json")
    assert (code, json.loads(out)) == (0, found)
    out = succeed(capsys, "scorecard", samples, run)
    for word in ("samples real Markov", "Markov 8", "AUROC", "match, longest"):
        assert word in " ".join(out.split())


def test_files_serve_in_place_of_a_run_and_copies_show(here, capsys):
    records = genome_text().split(">")
    (here / "held.fa").write_text(f">{records[2]}")
    (here / "train.fa").write_text(f">{records[1]}")
    train = "".join(records[1].split("\n")[1:]).upper()
    copies = [train[i * 40 : i * 40 + 40] for i in range(20)]
    found = genodiff.scorecard(copies, real=here / "held.fa", train=here / "train.fa")
    match = found["sets"]["samples"]["match"]
    assert [match[key] for key in ("median", "p99", "max", "long", "near")] == [40, 40, 40, 1, 1]
    assert match["long_ci95"][0] > 0.8
    assert found["sets"]["real"]["match"]["long"] < 0.2
    assert {one["figure"] for one in found["findings"]} >= {
        "match of 20 bases",
        "near copies, train",
    }
    alone = genodiff.scorecard(copies, real=here / "held.fa")
    assert list(alone["sets"]) == ["samples", "real"]
    assert alone["sets"]["samples"]["match"] is None
    (here / "copies.fa").write_text("".join(f">s{i}\n{s}\n" for i, s in enumerate(copies)))
    out = succeed(capsys, "scorecard", here / "copies.fa", "--real", here / "held.fa")
    assert "match" not in " ".join(out.split())


def test_impossible_requests_are_refused(run):
    with pytest.raises(UsageError, match="from a run or from a file"):
        genodiff.scorecard(["ACGT"])
    with pytest.raises(UsageError, match="--train is for --real"):
        genodiff.scorecard(["ACGT"], run=run, train=["ACGT"])
    with pytest.raises(UsageError, match="--fasta is for --model"):
        genodiff.scorecard(["ACGT"], real=["ACGT" * 9], fasta="x.fa")
    with pytest.raises(UsageError, match="--most 1 is below 2"):
        genodiff.scorecard(["ACGT"], real=["ACGT" * 9], most=1)
    with pytest.raises(DataError, match="windows without N"):
        genodiff.scorecard(["ACGT" * 9], real=["ACGT" * 9])


def test_a_page_has_all_figures_and_asks_no_network(here, capsys):
    """Motifs, a run that was trained on train, embeddings, and names that are no markup."""
    rows = [genome_text(seed).split("\n")[1].upper() for seed in (3, 4, 5)]
    (here / "real.fa").write_text(f">r\n{rows[0]}\n")
    (here / "train.fa").write_text(f">t\n{rows[1]}\n")
    (here / "<b>.fa").write_text("".join(f">s{i}\n{rows[2][i * 40 :][:40]}\n" for i in range(12)))
    (here / "m.jaspar").write_text(
        ">M1 <i>one</i>\nA [ 9 0 0 ]\nC [ 0 9 0 ]\nG [ 0 0 9 ]\nT [ 0 0 0 ]\n"
    )
    words = ["scorecard", "<b>.fa", "--real", "real.fa", "--train", "train.fa"]
    words += ["--motifs", "m.jaspar", "--html", "page.html", "--json", "--threads", "1"]
    out = succeed(capsys, *words)
    found = json.loads(out)
    assert found["motifs"][0]["id"] == "M1"
    page = (here / "page.html").read_text()
    assert "&lt;b&gt;.fa" in page
    assert "<b>.fa" not in page
    assert "<i>one" not in page
    for word in ("near copies, train", "effective share", "Markov 8", "log2 ratio", "<svg"):
        assert word in page
    assert "http" not in page.replace("http-equiv", "")
    assert command(capsys, *words)[1] == out
    assert (here / "page.html").read_text() == page


def test_a_run_serves_as_train_and_as_embedding(run, here):
    train = "".join(genome_text().split(">")[1].split("\n")[1:]).upper()
    other = "".join(genome_text(9).split(">")[1].split("\n")[1:]).upper()
    copies = [train[40 * i : 40 * i + 40] for i in range(30, 42)]
    found = genodiff.scorecard(copies, real=[other], train=run, embed=run)["sets"]
    assert found["samples"]["match"]["long"] == 1
    assert found["real"]["match"]["long"] == 0
    assert found["samples"]["fbd"]["value"] > 0
    assert list(found) == ["samples", "real", "Markov 1", "Markov 5", "Markov 8"]


@pytest.mark.slow
def test_any_file_of_samples_is_compared_and_the_run_keeps_its_page(run, here, capsys):
    samples = here / "mine.fa"
    lines = genome_text(seed=7).splitlines()[1::2]
    samples.write_text("".join(f">s{i}\n{line[:60]}\n" for i, line in enumerate(lines)))
    before = sorted(run.rglob("*"))
    code, out, err = command(capsys, "report", run, "--samples", samples)
    assert (code, out) == (0, f"{samples}.html\n"), err
    page = Path(f"{samples}.html").read_text()
    assert "4 samples, " in page
    assert sorted(run.rglob("*")) == before
    succeed(capsys, "report", run, "--samples", samples)
    samples.write_text(genome_text(seed=7))  # longer than every held-out interval
    succeed(capsys, "report", run, "--samples", samples)
    words = ["report", run, "--samples"]
    check_refused(capsys, [*words, "no.fa"], 3, "no.fa")
    check_refused(capsys, [*words, samples, "--out", samples, "--force"], 2, "is read")
