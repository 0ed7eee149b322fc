"""README's first commands run as pasted, in an empty folder, without a network."""

import re
import shlex
from pathlib import Path

import pytest
from Bio import SeqIO

from tests.commands import command

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def read_commands() -> list[list[str]]:
    """The words after `genodiff` of the section's second block."""
    section = README.split("## Install and first picture\n")[1].split("\n## ")[0]
    install, first = re.findall(r"```console\n(.*?)```", section, re.DOTALL)
    assert install.startswith('pip install ".[tracks]"')
    return [shlex.split(line)[1:] for line in str(first).splitlines()]


@pytest.mark.slow  # two genomes are fitted to a third
def test_the_first_commands_run_as_pasted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = read_commands()
    assert [one[0] for one in words] == ["data", "constraint", "score", "redesign"]
    for one in words:
        code, _, err = command(capsys, *one)
        assert code == 0, err
    page = (tmp_path / "constraint" / "constraint.html").read_text()
    assert "codon position 1" in page
    rows = (tmp_path / "constraint" / "classes.tsv").read_text().splitlines()
    rates = {row.split("\t")[0]: row.split("\t") for row in rows if not row.startswith("#")}
    at = rates["class"].index("rate")
    assert float(rates["codon_position_2"][at]) < 0.5 < float(rates["intergenic"][at])
    load = (tmp_path / "load.tsv").read_text().splitlines()
    assert sum("sample1" in one for one in load) >= 1
    scored = [x for x in (tmp_path / "scored.vcf").read_text().splitlines() if x[0] != "#"]
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
