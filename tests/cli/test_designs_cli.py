"""`genodiff scorecard --designs`: a table, JSON, a page; faults are one line."""

import json
from pathlib import Path

import pytest

import genodiff
from genodiff.errors import UsageError
from tests.commands import command
from tests.quality.test_scorecard import random_text

ORACLES = """
def guided(sequences):
    return [one.count("C") for one in sequences]

def judge(sequences):
    return [one.count("CG") for one in sequences]

def broken(sequences):
    return [float("nan")] * len(sequences)
"""


def write(path: Path, sequences: list[str]) -> None:
    path.write_text("".join(f">s{i}\n{one}\n" for i, one in enumerate(sequences)))


@pytest.fixture
def files(here, monkeypatch):
    monkeypatch.syspath_prepend(str(here))
    (here / "design_oracles.py").write_text(ORACLES)
    write(here / "good.fa", ["CG" * 8 + random_text(i, 24) for i in range(12)])
    write(here / "bad.fa", [random_text(50 + i, 20) + "C" * 20 for i in range(12)])
    write(here / "real.fa", [random_text(100 + i, 40) for i in range(40)])
    write(here / "train.fa", [random_text(7, 900)])
    return here


WORDS = ["scorecard", "--designs", "good=good.fa", "--designs", "bad=bad.fa", "--real", "real.fa"]
JUDGED = ["--designs", "a=good.fa", "--real", "real.fa", "--judge"]
ASKED = ["--oracle", "design_oracles:guided", "--judge", "design_oracles:judge"]


def test_a_table_a_page_and_json_say_the_same(files, run, capsys):
    words = [*WORDS, *ASKED, "--model", str(run), "--train", "train.fa", "--threads", "1"]
    code, out, err = command(capsys, *words, "--json")
    assert (code, err.count("error")) == (0, 0)
    found = json.loads(out)
    good, bad, real = found["rows"]
    assert [row["method"] for row in found["rows"]] == ["good", "bad", "real"]
    assert good["judge"]["mean"] > 8 > bad["judge"]["mean"]
    assert (good["gains"]["hacked"], bad["gains"]["hacked"]) == (False, True)
    assert 1 < real["bits"]["mean"] < 3
    code, out, _ = command(capsys, *words, "--html", "d.html")
    assert code == 0
    assert "bad hacks its oracle" in " ".join(out.split())
    page = (files / "d.html").read_text()
    for word in ("bad hacks its oracle", "Pareto", "design_oracles:judge", "<svg"):
        assert word in page
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.parametrize("width", [50, 110, 250])
def test_no_heading_and_no_figure_is_cut_on_any_terminal(files, run, capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    words = [*WORDS, *ASKED, "--model", str(run), "--train", "train.fa", "--threads", "1"]
    code, out, _ = command(capsys, *words)
    assert code == 0
    lines = [line.rstrip() for line in out.split("\n") if "hacks" not in line]
    assert max(len(line) for line in lines if "±" in line) <= width
    assert "…" not in out
    headings = [line for line in lines if line.lstrip().startswith("method")]
    assert (len(headings) == 1) == (width == 250)
    told = " ".join(headings)
    for name in ("guided", "judge", "transfer", "bits", "6-mers r", "difference", "match", "front"):
        assert told.count(name) == 1
    for name in ("good", "bad", "real"):
        assert sum(line.split()[:1] == [name] for line in lines) == len(headings)


def test_python_takes_functions_and_strings():
    found = genodiff.compare_designs(
        {"one": ["ACGT" * 5, "AACC" * 5]},
        real=[random_text(i, 20) for i in range(5)],
        judge=lambda sequences: [one.count("A") for one in sequences],
        lower=True,
    )
    assert found["rows"][0]["judge"]["mean"] == 7.5
    assert found["rows"][0]["guided"] is None
    with pytest.raises(UsageError, match="no designs"):
        genodiff.compare_designs({}, real=["ACGT"])


@pytest.mark.parametrize(
    ("words", "says", "code"),
    [
        (["--designs", "good.fa", "--real", "real.fa"], "expected NAME=FASTA", 2),
        (["--designs", "a=good.fa", "--designs", "a=bad.fa", "--real", "real.fa"], "twice", 2),
        (["--designs", "real=good.fa", "--real", "real.fa"], "row of --real", 2),
        (["--designs", "a=none.fa", "--real", "real.fa"], "not there", 3),
        (["--designs", "a=good.fa"], "needs --real", 2),
        (["--designs", "a=good.fa", "--real", "real.fa", "--motifs", "m"], "go together", 2),
        (["good.fa", "--real", "real.fa", "--judge", "a:b"], "for --designs", 2),
        (["good.fa", "--real", "real.fa", "--lower"], "--lower is for --designs", 2),
        (["--designs", "a=good.fa", "--real", "short.fa"], "40 bases", 3),
        (["--designs", "a=good.fa", "--real", "real.fa", "--cnn"], "do not go together", 2),
        ([*JUDGED, "design_oracles:none"], "--judge design_oracles:none: no 'none'", 2),
        ([*JUDGED, "a:b", "--oracle", "a:b"], "--judge and --oracle are both a:b", 2),
        ([*JUDGED, "a:b", "--oracle-label", "q"], "--oracle-label q is of a fine-tuned", 2),
        (
            ["--designs", "a=good.fa", "--real", "real.fa", "--judge", "design_oracles:broken"],
            "nan",
            3,
        ),
    ],
)
def test_a_fault_is_one_line(files, capsys, words, says, code):
    write(files / "short.fa", ["ACGT"])
    given, out, err = command(capsys, "scorecard", *words)
    assert (given, out) == (code, "")
    assert says in err
    assert err.count("error:") == 1
