"""`genodiff ism` and `genodiff dependencies` from outside."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import genodiff
from tests.commands import command, succeed

LETTERS = "ACGTTGCANNGATTACAGGCCTATC" * 4


@pytest.fixture
def case(tmp_path, monkeypatch):
    (tmp_path / "ref.fa").write_text(f">chr1\n{LETTERS}\n>chr2\nGGATC\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words(verb: str, run: Path, out: str, *more: object) -> list[object]:
    return [verb, "--model", run, "--fasta", "ref.fa", "-o", out, "--threads", 1, *more]


@pytest.mark.few(1)
@pytest.mark.parametrize("verb", ["ism", "dependencies"])
def test_every_format_has_the_same_numbers(verb, run, case, capsys):
    place = ("--region", "chr1:5-13")
    (case / "genes.bed").write_text("chr1\t0\t9\tNEAR\nchr1\t30\t40\tFAR\n")
    for ending in ("tsv", "parquet", "npz", "svg", "png", "pdf", "html"):
        more = ("--genes", "genes.bed") if ending in ("svg", "png", "pdf", "html") else ()
        code, out, err = command(capsys, *words(verb, run, f"o.{ending}", *place, *more))
        assert (code, out) == (0, ""), err
        assert not (case / f"o.{ending}.partial").exists()
        told = json.loads((case / f"o.{ending}.json").read_text())
        assert (told["scored"], told["regions"][0]["start"]) == (7, 4)
    code, out, err = command(capsys, *words(verb, run, "-", *place))
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


def test_a_plan_counts_and_writes_nothing(run, case, capsys, monkeypatch):
    monkeypatch.setattr("genodiff.jobs.machine.time_steps", lambda _: 2.0)
    before = sorted(case.iterdir())
    out = succeed(capsys, *words("ism", run, "o.tsv", "--plan", "--json"))
    assert json.loads(out)["evaluations"] == 100 - 8 + 5
    assert json.loads(out)["seconds"] == 2 * (100 - 8 + 5)
    more = ("--plan", "--json", "--region", "chr2")
    told = json.loads(succeed(capsys, *words("dependencies", run, "o.tsv", *more)))
    assert told["exact_evaluations"] == 5 + 3 * 5 * 4
    assert told["seconds"] == 2 * told["evaluations"]
    out = succeed(capsys, *words("ism", run, "o.tsv", "--plan"))
    assert re.search(r"^time +about 3 min on cpu$", out, re.M), out  # 194 s
    assert sorted(case.iterdir()) == before


def test_python_gives_the_arrays_of_the_file(run, case, capsys):
    model = genodiff.load(run, device="cpu")
    succeed(capsys, *words("dependencies", run, "o.npz", "--region", "chr2"))
    arrays = np.load("o.npz")
    (found,) = model.dependencies(Path("ref.fa"), region=["chr2"])
    assert np.array_equal(found.dependency, arrays["dependency"][0])
    assert model.dependencies("GGATC").dependency.shape == (5, 5)
    assert model.dependencies("GGATC", exact=True).dependency == pytest.approx(
        found.dependency, abs=1e-5
    )
