"""README's first commands run as pasted; `examples/train_in_one_file.py` trains the same bits."""

import re
import runpy
import shlex

import pytest
import torch
from Bio import SeqIO

import genodiff
from genodiff.runs.model import load_model
from tests.commands import succeed
from tests.folders import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
SCRIPT = ROOT / "examples" / "train_in_one_file.py"


def read_commands() -> list[list[str]]:
    """The words after `genodiff` of the section's second block."""
    section = README.split("## Install and first picture\n")[1].split("\n## ")[0]
    install, first = re.findall(r"```console\n(.*?)```", section, re.DOTALL)
    assert install.startswith('pip install ".[tracks]"')
    return [shlex.split(line)[1:] for line in str(first).splitlines()]


@pytest.mark.slow  # two genomes are fitted to a third
def test_the_first_commands_run_as_pasted(here, capsys):
    words = read_commands()
    assert [one[0] for one in words] == ["data", "constraint", "score", "redesign"]
    for one in words:
        succeed(capsys, *one)
    page = (here / "constraint" / "constraint.html").read_text()
    assert "codon position 1" in page
    rows = (here / "constraint" / "classes.tsv").read_text().splitlines()
    rates = {row.split("\t")[0]: row.split("\t") for row in rows if not row.startswith("#")}
    at = rates["class"].index("rate")
    assert float(rates["codon_position_2"][at]) < 0.5 < float(rates["intergenic"][at])
    load = (here / "load.tsv").read_text().splitlines()
    assert sum("sample1" in one for one in load) >= 1
    scored = [x for x in (here / "scored.vcf").read_text().splitlines() if x[0] != "#"]
    assert len(scored) > 500
    assert all("GD_SCORE=" in one and "GD_CSQ=" in one for one in scored)
    with open("designs.gb", encoding="ascii") as file:
        (design,) = SeqIO.parse(file, "genbank")
    edits = [f for f in design.features if f.type == "variation"]
    assert 1 <= sum(len(f) for f in edits) <= 4


def test_a_reader_knows_within_ninety_lines_what_it_is_for():
    lines = README.splitlines()
    assert len(lines) <= 90
    assert "](docs/assets/constraint.png)" in README
    assert "## Your question, and the command" in lines


STEPS = 8


def test_one_file_without_lightning_trains_the_weights_that_genodiff_train_does(tmp_path):
    text = SCRIPT.read_text()
    assert len(text.splitlines()) <= 150
    assert "lightning" not in text.lower().replace("no lightning", "")
    network = runpy.run_path(str(SCRIPT))["train"](STEPS)
    genodiff.train(
        "toy", preset="caduceus-ps-tiny", seq_len=256, batch_size=8, max_steps=STEPS,
        out=tmp_path / "run",
    )  # fmt: skip
    wanted = dict(load_model(tmp_path / "run").backbone.named_parameters())
    trained = dict(network.named_parameters())
    assert trained.keys() == wanted.keys()
    for name, weight in wanted.items():
        assert torch.equal(trained[name], weight), name
