"""The Snakemake workflows of benchmarks/cluster and examples/workflow, run with local cores."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tiny_run import change_base, genome_text, write_run, write_vcf

import genodiff
from tests.commands import command

ROOT = Path(__file__).resolve().parents[2]
SNAKEFILE = ROOT / "benchmarks/cluster/Snakefile"
CONSTRAINT = ROOT / "examples/workflow/Snakefile"
needs_snakemake = pytest.mark.skipif(
    shutil.which("snakemake") is None, reason="snakemake is not installed"
)


@pytest.mark.parametrize(
    ("file", "verbs"),
    [
        (SNAKEFILE, ("score", "embed", "eval", "merge")),
        (CONSTRAINT, ("align", "constraint", "merge")),
    ],
)
def test_every_command_of_the_workflow_is_understood(file, verbs, capsys, monkeypatch):
    """Its flags are those of the verbs; without snakemake this is all that can be told."""
    monkeypatch.setenv("COLUMNS", "200")
    text = file.read_text().replace("rm -rf {params.folder} && ", "")
    for verb in verbs:
        helped = command(capsys, verb, "--help")[1]
        blocks = [part for part in text.split("shell:") if f'"genodiff {verb} ' in part[:60]]
        assert blocks
        for block in blocks:
            words = " ".join(line.strip() for line in block.strip().splitlines()[:3]).split()
            for flag in {word.strip('"') for word in words if word.startswith("--")}:
                assert flag in helped, (verb, flag)


def run_workflow(folder: Path, file: Path, **settings: object) -> None:
    """Run it on two cores, with this genodiff in front of any other."""
    (folder / "bin").mkdir()
    own = folder / "bin" / "genodiff"
    own.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m genodiff "$@"\n')
    own.chmod(0o755)
    given = (f"{key}={value}" for key, value in settings.items())
    subprocess.run(
        ["snakemake", "-s", str(file), "--cores", "2", "--config", *given],
        check=True, env={**os.environ, "PATH": f"{own.parent}:{os.environ['PATH']}"},
    )  # fmt: skip


@pytest.mark.slow
@needs_snakemake
def test_constraint_of_a_workflow_has_the_bytes_of_one_run(here):
    genodiff.fetch_data("example")
    near = ["example/near.fa", "example/far.fa"]
    run_workflow(here, CONSTRAINT, genome="example/genome.fa", relatives=",".join(near))
    genodiff.constraint("example/genome.fa", relatives=near, out="whole")
    for name in ("rs.bw", "elements.bed", "constraint.html"):
        assert Path("constraint", name).read_bytes() == Path("whole", name).read_bytes()


@pytest.mark.slow
@needs_snakemake
def test_the_workflow_gives_the_bytes_of_one_run(here):
    (here / "run").mkdir()
    run = write_run(here / "run")
    Path("ref.fa").write_text(genome_text(seed=5))
    write_vcf(Path("in.vcf"), [change_base(Path("ref.fa"), "c1", pos) for pos in range(101, 141)])
    run_workflow(
        here, SNAKEFILE, model=run, fasta="ref.fa", variants="in.vcf", windows=64,
        evaluate="true", shards=2, batch_size=2,
    )  # fmt: skip
    genodiff.score(run, "in.vcf", fasta="ref.fa", out="whole.vcf")
    genodiff.embed(run, Path("ref.fa"), out="whole.npz", window=64)
    whole = genodiff.evaluate(run, batch_size=2)
    assert Path("results/scored.vcf").read_bytes() == Path("whole.vcf").read_bytes()
    assert Path("results/embeddings.npz").read_bytes() == Path("whole.npz").read_bytes()
    with np.load("whole.npz") as held:
        assert held["embeddings"].shape[0] > 2
    merged = json.loads(Path("results/evaluation.json").read_text())
    for key in ("bits_per_base", "ci95_bits", "tokens", "nelbo_nats_total", "contigs"):
        assert merged[key] == whole[key]
