"""`--guidance` of samples and designs: an oracle is pleased, constraints hold, calls counted."""

import json
from pathlib import Path

import numpy as np
import pytest
from tiny_run import genome_text

import genodiff
from genodiff.errors import UsageError
from genodiff.io.fasta import read_fasta
from tests.commands import check_refused, command, succeed

ORACLE = """
import time
import torch

seen = []

def gc(sequences):
    return [sum(c in "GC" for c in one) for one in sequences]

def gc_of_ids(ids):
    return ((ids == 1) | (ids == 2)).sum(1)

class Content(torch.nn.Module):
    def forward(self, x):
        return x[:, 1:3].sum((1, 2))

content = Content()

def rate(sequences):
    seen.extend(sequences)
    return [one.count("G") for one in sequences]

def nan(sequences):
    return [float("nan")] * len(sequences)

def short(sequences):
    return [1.0]

def broken(sequences):
    raise ValueError("no weights\\nhere")

def slow(sequences):
    time.sleep(30)

def complex(sequences):
    return [1j] * len(sequences)

def large(sequences):
    return [1e300] * len(sequences)
"""
BASE = ["--fasta", "genome.fa", "--region", "c1:101-112", "--region", "c2:2001-2012"]
WORDS = [*BASE, "--avoid", "GG", "--steps", 3, "--threads", 1, "-n", 2]
GUIDED = ["--guidance", "smc", "--oracle", "rates:rate", "--strength", 2]
SMALL = ["--guidance-option", "particles=4", "--guidance-option", "drawn=1"]


@pytest.fixture
def genome(here, monkeypatch):
    monkeypatch.syspath_prepend(str(here))
    monkeypatch.delitem(__import__("sys").modules, "rates", raising=False)
    (here / "rates.py").write_text(ORACLE)
    (here / "genome.fa").write_text(genome_text())
    return here


def read(file: Path) -> list[str]:
    return [line for line in file.read_text().split("\n") if line and not line.startswith(">")]


def test_designs_satisfy_the_constraint_and_please_the_oracle(run, genome, capsys):
    succeed(capsys, "redesign", run, *WORDS, "-o", "plain.fa")
    succeed(capsys, "redesign", run, *WORDS, "-o", "o.fa", *GUIDED, *SMALL)
    designs = read(genome / "o.fa")
    assert [len(one) for one in designs] == [12] * 4
    assert not any("GG" in one.upper() or "CC" in one.upper() for one in designs)
    plain = read(genome / "plain.fa")
    count = [sum(one.upper().count("G") for one in some) for some in (designs, plain)]
    assert count[0] > count[1]
    told = json.loads((genome / "o.fa.json").read_text())
    assert told["guidance"] == "smc"
    assert told["oracle"] == "rates:rate"
    assert told["guidance_options"]["particles"] == 4
    for record in told["records"]:
        assert 0 < record["oracle_calls"] <= 4 * 3
        assert record["log_z"] > 0
        assert record["constraints_met"]
    assert " guidance=smc strength=2 " in (genome / "o.fa").read_text().replace("\n", " ")
    command(capsys, "redesign", run, *WORDS, "-o", "again.fa", *GUIDED, *SMALL, "--batch-size", 1)
    assert (genome / "again.fa").read_text() == (genome / "o.fa").read_text()


def test_designs_that_may_be_drawn_again_have_no_log_z(run, genome, capsys):
    """It would be an estimate for the law without the condition."""
    letters = np.random.default_rng(3).choice(list("ACGT"), 30_000)
    (genome / "other.fa").write_text(f">other\n{''.join(letters)}\n")
    words = ["redesign", run, *WORDS, *GUIDED, *SMALL]
    succeed(capsys, *words, "-o", "o.fa", "--no-repeats", "9:other.fa")
    records = json.loads((genome / "o.fa.json").read_text())["records"]
    assert all(record["oracle_calls"] > 0 for record in records)
    assert not any("log_z" in record for record in records)


def test_the_oracle_sees_the_region_and_its_flanks_and_no_forbidden_word_in_it(run, genome, capsys):
    words = ["redesign", run, *WORDS, "-o", "o.fa", *GUIDED, *SMALL]
    succeed(capsys, *words, "--oracle-flank", 5)
    import rates

    text = genome_text().upper().split("\n")
    frames = [(text[1][95:100], text[1][112:117]), (text[3][1995:2000], text[3][2012:2017])]
    for one in rates.seen:
        assert (one[:5], one[-5:]) in frames
        assert len(one) == 22
        assert "GG" not in one[5:17]
        assert "CC" not in one[5:17]


def test_strength_zero_is_the_design_without_an_oracle(run, genome, capsys):
    zero = [*GUIDED[:-1], 0, *SMALL]
    succeed(capsys, "redesign", run, *WORDS, "-o", "plain.fa")
    succeed(capsys, "redesign", run, *WORDS, "-o", "o.fa", *zero)
    assert read(genome / "o.fa") == read(genome / "plain.fa")
    told = json.loads((genome / "o.fa.json").read_text())
    assert {record["oracle_calls"] for record in told["records"]} == {0}


@pytest.mark.few(11)
@pytest.mark.parametrize(
    ("words", "says", "code"),
    [
        ([*GUIDED, "--max-calls", "5"], "more than --max-calls 5", 2),
        (["--guidance", "exact", *GUIDED[2:]], "need joint draws", 2),
        (["--oracle", "rates:rate"], "no guidance", 2),
        (["--oracle-flank", "3"], "--oracle-flank 3", 2),
        ([*GUIDED, "--oracle-flank", "-1"], "give 0 or more", 2),
        ([*GUIDED[:3], "rates:none"], "no 'none' in rates", 2),
        ([*GUIDED[:3], "rates:nan"], "nan for sequence 1", 3),
        ([*GUIDED[:3], "rates:short"], "shape (1,)", 3),
        ([*GUIDED[:3], "rates:broken"], "ValueError: no weights here", 3),
        ([*GUIDED[:3], "rates:slow", "--oracle-timeout", "0.2"], "no answer in 0.2 s", 3),
        ([*GUIDED, "--guidance-option", "particels=4"], "did you mean 'particles'", 2),
        ([*GUIDED[:4], "--strength", "nan"], "--strength nan", 2),
        ([*GUIDED, "--conditional", "elsewhere"], "elsewhere", 4),
        ([*GUIDED, "--conditional", "RUN"], "not another network", 2),
        ([*GUIDED, "--oracle-label", "high"], "a label (high) is of a fine-tuned oracle", 2),
        ([*GUIDED[:3], "rates:complex"], "gave no real numbers", 3),
        ([*GUIDED[:3], "rates:large"], "gave 1e+300, which --strength 1 makes larger", 3),
        ([*GUIDED[:4], "--strength", "1e300"], "--strength 1e+300", 2),
        (["--guidance", "cfg"], "uses a network", 2),
        (["--guidance", "cfg", "--conditional", "RUN", *GUIDED[2:]], "not an oracle", 2),
        (["--guidance", "smk", *GUIDED[2:]], "smc", 2),
    ],
)
@pytest.mark.usefixtures("genome")
def test_a_fault_is_one_line_and_nothing_is_written(run, capsys, words, says, code):
    words = [run if word == "RUN" else word for word in words]
    check_refused(capsys, ["redesign", run, *WORDS, "-o", "o.fa", "-q", *words], code, says)


def test_python_guides_a_template_by_a_function(run, genome):
    (genome / "t.fa").write_text(">t\nACGTNNNNNNACGT\n")
    guide = {
        "guidance": "best-of-n",
        "oracle": lambda some: [one.count("T") for one in some],
        "options": {"particles": 6.0},
    }
    how = {"template": genome / "t.fa", "steps": 2, "rules": {"max_run": 2}}
    told = genodiff.redesign(run, out=genome / "o.fa", guide=guide, **how)
    (design,) = read(genome / "o.fa")
    assert (design[:4], design[10:]) == ("ACGT", "ACGT")
    assert told["records"][0]["oracle_calls"] <= 6
    with pytest.raises(UsageError, match="no guidance 'best'"):
        genodiff.redesign(run, out=genome / "o.fa", guide={"guidance": "best"}, **how)


@pytest.fixture
def sample_words(run, genome):
    return ["--checkpoint", run, "--n", 2, "--length", 16, "--steps", 3]


def count_gc(path: Path) -> float:
    text = b"".join(record.sequence for record in read_fasta(path))
    return sum(text.count(c) for c in (b"G", b"C")) / len(text)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("guidance", "oracle", "options"),
    [
        ("smc", "gc", ["particles=4", "drawn=1"]),
        ("exact", "gc_of_ids", ["drawn=1"]),
        ("first-order", "content", ["drawn=1"]),
        ("best-of-n", "gc", ["particles=4"]),
        ("beam", "content", ["particles=4", "width=2", "drawn=1"]),
    ],
)
def test_guided_samples_have_more_of_what_is_wanted_and_say_how(
    sample_words, sample, here, guidance, oracle, options
):
    given = ["--guidance", guidance, "--oracle", f"rates:{oracle}"]
    given += ["--oracle-input", "ids"] if oracle == "gc_of_ids" else []
    for option in options:
        given += ["--guidance-option", option]
    code, _, err = sample(*sample_words, "--fasta", "plain.fa")
    assert code == 0, err
    found = []
    for strength, size in ((0, 16), (2, 1), (2, 16)):
        name = f"{strength}-{size}.fa"
        code, _, err = sample(
            *sample_words, *given, "--fasta", name, "--strength", strength, "--batch-size", size
        )
        assert code == 0, err
        found.append([record.sequence for record in read_fasta(here / name)])
    assert found[0] == [record.sequence for record in read_fasta(here / "plain.fa")]
    assert found[1] == found[2]
    assert count_gc(here / "2-16.fa") > count_gc(here / "plain.fa")
    told = json.loads((here / "2-16.fa.json").read_text())
    assert (told["guidance"], told["strength"]) == (guidance, 2.0)
    assert told["oracle"] == f"rates:{oracle}"
    assert all(entry["oracle_calls"] > 0 for entry in told["records"])
    assert all(("log_z" in entry) == (guidance == "smc") for entry in told["records"])


@pytest.mark.parametrize(
    ("rest", "code", "said"),
    [
        (("--guidance-option", "particles=0"), 2, "at least 1"),
        (("--sampler", "p2"), 2, "cannot be guided"),
        (("--length", 400, "--max-calls", 800), 2, "--max-calls 800"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(sample_words, capsys, rest, code, said):
    given = sample_words[:4] if "--length" in rest else sample_words
    more = "--fasta out.fa --guidance smc --oracle rates:gc --threads 1 -q".split()
    check_refused(capsys, ["sample", *given, *more, *rest], code, said)


def test_cfg_by_the_run_itself_changes_nothing(sample_words, run, sample, here):
    for name, given in (("a.fa", []), ("b.fa", ["--guidance", "cfg", "--conditional", run])):
        code, _, err = sample(*sample_words, "--fasta", name, *given)
        assert code == 0, err
    a, b = ([one.sequence for one in read_fasta(here / name)] for name in ("a.fa", "b.fa"))
    assert a == b
