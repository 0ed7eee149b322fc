"""`genodiff sample --guidance`: oracles from the command line, and what is wrong with some."""

import json
from pathlib import Path

import pytest

from genodiff.io.fasta import read_fasta
from tests.commands import check_refused

ORACLES = """
import torch


def gc(sequences):
    return [sum(c in "GC" for c in one) for one in sequences]


def gc_of_ids(ids):
    return ((ids == 1) | (ids == 2)).sum(1)


class Content(torch.nn.Module):
    def forward(self, x):
        return x[:, 1:3].sum((1, 2))


content = Content()
"""


@pytest.fixture
def words(run, here, monkeypatch):
    (here / "oracles_of_test.py").write_text(ORACLES)
    monkeypatch.syspath_prepend(str(here))
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
    words, sample, here, guidance, oracle, options
):
    given = ["--guidance", guidance, "--oracle", f"oracles_of_test:{oracle}"]
    given += ["--oracle-input", "ids"] if oracle == "gc_of_ids" else []
    for option in options:
        given += ["--guidance-option", option]
    code, _, err = sample(*words, "--fasta", "plain.fa")
    assert code == 0, err
    found = []
    for strength, size in ((0, 16), (2, 1), (2, 16)):
        name = f"{strength}-{size}.fa"
        code, _, err = sample(
            *words, *given, "--fasta", name, "--strength", strength, "--batch-size", size
        )
        assert code == 0, err
        found.append([record.sequence for record in read_fasta(here / name)])
    assert found[0] == [record.sequence for record in read_fasta(here / "plain.fa")]
    assert found[1] == found[2]
    assert count_gc(here / "2-16.fa") > count_gc(here / "plain.fa")
    told = json.loads((here / "2-16.fa.json").read_text())
    assert (told["guidance"], told["strength"]) == (guidance, 2.0)
    assert told["oracle"] == f"oracles_of_test:{oracle}"
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
def test_what_is_wrong_is_one_line_and_nothing_is_written(words, capsys, rest, code, said):
    given = words[:4] if "--length" in rest else words
    more = "--fasta out.fa --guidance smc --oracle oracles_of_test:gc --threads 1 -q".split()
    check_refused(capsys, ["sample", *given, *more, *rest], code, said)


def test_cfg_by_the_run_itself_changes_nothing(words, run, sample, here):
    for name, given in (("a.fa", []), ("b.fa", ["--guidance", "cfg", "--conditional", run])):
        code, _, err = sample(*words, "--fasta", name, *given)
        assert code == 0, err
    a, b = ([one.sequence for one in read_fasta(here / name)] for name in ("a.fa", "b.fa"))
    assert a == b
