"""`genodiff scorecard`: a run or files give the real sequence; faults are said early."""

import json
from pathlib import Path

import pytest
from tiny_run import genome_text

import genodiff
from genodiff.errors import DataError, UsageError
from tests.commands import command

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def samples(run: Path, here: Path) -> Path:
    genodiff.sample(run, out=here / "new.fa", n=30, length=32, steps=4, device="cpu")
    return here / "new.fa"


def test_samples_stand_beside_the_split_of_their_run(
    run: Path, samples: Path, capsys: Capture
) -> None:
    found = genodiff.scorecard(samples, run=run, split="test")
    assert list(found["sets"]) == ["samples", "real", "Markov 1", "Markov 5", "Markov 8"]
    assert (found["samples"], found["length"]) == (30, 32)
    assert 2 <= found["compared"] <= 30
    assert all(part["sequences"] == found["compared"] for part in found["sets"].values())
    assert found["sets"]["samples"]["match"]["max"] < 32  # an untrained network copies nothing
    assert found["train_bases"] > 8_000
    code, out, _ = command(capsys, "scorecard", samples, "--model", run, "--json")
    assert (code, json.loads(out)) == (0, found)
    code, out, _ = command(capsys, "scorecard", samples, run)
    assert code == 0
    for word in ("samples real Markov", "Markov 8", "AUROC", "match, longest"):
        assert word in " ".join(out.split())


def test_files_serve_in_place_of_a_run_and_copies_show(here: Path, capsys: Capture) -> None:
    records = genome_text().split(">")
    (here / "held.fa").write_text(f">{records[2]}")
    (here / "train.fa").write_text(f">{records[1]}")
    train = "".join(records[1].split("\n")[1:]).upper()
    copies = [train[i * 40 : i * 40 + 40] for i in range(20)]
    found = genodiff.scorecard(copies, real=here / "held.fa", train=here / "train.fa")
    assert found["sets"]["samples"]["match"] == {"median": 40, "p99": 40, "max": 40, "long": 1}
    assert found["sets"]["real"]["match"]["long"] < 0.2
    alone = genodiff.scorecard(copies, real=here / "held.fa")
    assert list(alone["sets"]) == ["samples", "real"]
    assert alone["sets"]["samples"]["match"] is None
    (here / "copies.fa").write_text("".join(f">s{i}\n{s}\n" for i, s in enumerate(copies)))
    code, out, _ = command(capsys, "scorecard", here / "copies.fa", "--real", here / "held.fa")
    assert code == 0
    assert "match" not in " ".join(out.split())


def test_impossible_requests_are_refused(run: Path, here: Path, capsys: Capture) -> None:
    with pytest.raises(UsageError, match="from a run or from a file"):
        genodiff.scorecard(["ACGT"])
    with pytest.raises(UsageError, match="--train is for --real"):
        genodiff.scorecard(["ACGT"], run=run, train=["ACGT"])
    with pytest.raises(UsageError, match="--fasta is for --model"):
        genodiff.scorecard(["ACGT"], real=["ACGT" * 9], fasta="x.fa")
    with pytest.raises(DataError, match="windows without N"):
        genodiff.scorecard(["ACGT" * 9], real=["ACGT" * 9])
    code, _, err = command(capsys, "scorecard", here / "none.fa", "--model", run)
    assert code == 3
    assert "not there" in err
    code, _, err = command(capsys, "scorecard", here / "none.fa")
    assert code == 2
