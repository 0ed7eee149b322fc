"""`genodiff data list|get|build`: data on stdout, one line on stderr where something is missing,
the right exit code.
"""

import json
from pathlib import Path

from genomes import random_dna, write_fasta

from tests.commands import command, succeed


def test_list_names_every_recipe_and_says_that_the_toy_is_built_in(capsys):
    code, out, _ = command(capsys, "data", "list")
    assert code == 0
    assert {line.split()[0] for line in out.splitlines()} >= {
        "hg38", "mm39", "sacCer3", "ecoli_k12", "toy",
    }  # fmt: skip
    assert "built in" in next(line for line in out.splitlines() if line.startswith("toy"))
    _, out, _ = command(capsys, "data", "list", "--json")
    rows = {row["name"]: row for row in map(json.loads, out.splitlines())}
    assert rows["toy"]["present"] is True
    assert rows["hg38"]["present"] is False
    assert rows["hg38"]["sources"][0]["sha256"]


def test_build_counts_windows_and_reports_what_was_skipped(capsys, tmp_path):
    contigs = {"chr1": random_dna(5000) + "N" * 5000, "x": "ACGT"}
    contigs |= {"chr13": random_dna(700), "chr21": random_dna(600)}
    path = write_fasta(tmp_path / "part.fa", contigs)
    words = ("data", "build", "hg38", "--fasta", path, "--seq-len", 100)
    answer = json.loads(succeed(capsys, *words, "--json"))
    assert [answer["splits"][s]["windows"] for s in ("train", "valid", "test")] == [50, 7, 6]
    assert answer["splits"]["train"]["windows_too_much_n"] == 50
    assert any("lacks 21 of hg38's 24 contigs" in note for note in answer["notes"])
    assert any("x" in note for note in answer["notes"])
    assert Path(answer["store"]).is_dir()
    assert "50 windows with more than 50% N" in succeed(capsys, *words)


def test_build_honours_a_bed(capsys, tmp_path):
    path, bed = write_fasta(tmp_path / "in.fa", {"a": random_dna(1000)}), tmp_path / "in.bed"
    bed.write_text("a\t0\t500\ttrain\na\t500\t700\ttest\n")
    code, out, _ = command(
        capsys, "data", "build", "hg38", "--fasta", path, "--bed", bed, "--seq-len", 50, "--json"
    )
    splits = json.loads(out)["splits"]
    assert code == 0
    assert [splits[name]["windows"] for name in ("train", "test", "valid")] == [10, 4, 0]
