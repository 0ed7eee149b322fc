"""`--block` through a run's life: begun from MDLM, exported, in shards, sampled."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_run import NETWORK, genome_text, save_run

import genodiff
from genodiff.diffusion.objectives.block import BlockDiffusion
from genodiff.generate import filler
from genodiff.hub.adopt import adopt_network
from genodiff.hub.export import export_model
from genodiff.hub.source import read_source
from genodiff.io.fasta import read_fasta
from genodiff.jobs.journal import Journal
from genodiff.runs.model import load_model
from genodiff.runs.resolve import resolve_config
from tests.commands import command, exit_code


def single_run(folder: Path, **diffusion: Any) -> Path:
    """An untrained network of one strand, as a run at `folder`/run."""
    (folder / "genome.fa").write_text(genome_text())
    given = {
        "recipe": "own", "fasta": str(folder / "genome.fa"),
        "backbone": NETWORK | {"strands": "single", "n_layer": 2},
        "data": {"seq_len": 64}, "diffusion": diffusion,
    }  # fmt: skip
    return save_run(folder / "run", resolve_config(given))


def test_a_run_in_blocks_begins_from_an_unpaired_mdlm(tmp_path):
    source = single_run(tmp_path)
    assert exit_code(
        "train", "--fasta", tmp_path / "genome.fa", "--init", source, "--block", 8, "--seq-len", 64,
        "--max-steps", 1, "--batch-size", 2, "--lr", 1e-12, "--weight-decay", 0,
        "--validate-windows", 0, "--threads", 1, "--device", "cpu", "-q", "--out",
        tmp_path / "blocks",
    ) == 0  # fmt: skip
    begun, before = load_model(tmp_path / "blocks"), load_model(source)
    assert begun.objective == BlockDiffusion(begun.diffusion, block=8)
    for mine, theirs in zip(begun.backbone.parameters(), before.backbone.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-6, rtol=0)


@pytest.mark.few(2)
@pytest.mark.parametrize("objective", [{"block": 4}, {"objective": "sedd"}, {"objective": "mlm"}])
def test_an_exported_run_comes_back_with_its_objective(tmp_path, objective):
    run = single_run(tmp_path, **objective)
    export_model(run, tmp_path / "out")
    adopt_network(read_source(tmp_path / "out"), tmp_path / "again")
    one, other = genodiff.load(run), genodiff.load(tmp_path / "again")
    assert other.inner.objective == one.inner.objective
    rows = [model.sample(2, length=21, seed=3) for model in (one, other)]
    assert rows[0] == rows[1]


def test_shards_in_blocks_are_one_evaluation(tmp_path, monkeypatch):
    run = single_run(tmp_path)
    monkeypatch.chdir(tmp_path)
    options: dict[str, Any] = {"repeats": 2, "batch_size": 2, "seed": 4, "block": 16}
    whole = genodiff.evaluate(run, **options)
    names = [f"s{i}.npy" for i in (1, 2, 3)]
    for i, name in enumerate(names, 1):
        genodiff.evaluate(run, shard=f"{i}/3", out=name, **options)
    merged = genodiff.merge(names[::-1], out="merged.json")
    assert merged["block"] == whole["block"] == 16
    for key in ("bits_per_base", "ci95_bits", "tokens", "windows"):
        assert merged[key] == whole[key], key
    kept = json.loads((run / "eval.json").read_text())
    assert list(kept) == ["test in blocks of 16"]


def test_a_long_record_that_is_stopped_goes_on_to_the_same_bytes(tmp_path, capsys, monkeypatch):
    run = single_run(tmp_path, objective="block", block=8)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(filler, "EACH", 24)
    words = ["sample", run, "-n", 1, "--length", 100, "--steps", 4, "-q"]
    assert exit_code(*words, "--fasta", "whole.fa") == 0
    append, stops = Journal.append_part, 0

    def stop(journal: Journal, part: bytes) -> None:
        append(journal, part)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append_part", stop)
        while (code := command(capsys, *words, "--fasta", "o.fa", "--batch-size", 1)[0]) == 130:
            stops += 1
    assert (code, stops) == (0, 4)
    assert Path("o.fa").read_bytes() == Path("whole.fa").read_bytes()
    read = (json.loads(Path(f"{one}.fa.json").read_text()) for one in ("o", "whole"))
    one, whole = ([record["nfe"] for record in told["records"]] for told in read)
    assert one == whole


def test_regions_of_a_genome_are_filled_and_designs_are_refused(tmp_path, capsys, monkeypatch):
    run = single_run(tmp_path, objective="block", block=8)
    monkeypatch.chdir(tmp_path)
    places = ["--region", "c1:101-103", "--region", "c1:106-107", "--region", "c2:1-20"]
    places += ["--region", "c2:3991-4000"]
    words = ["sample", run, "--template", "genome.fa", *places, "--only-filled", "-q"]
    assert exit_code(*words, "-o", "regions.fa") == 0
    filled = {record.name: record.sequence for record in read_fasta("regions.fa")}
    assert [len(one) for one in filled.values()] == [3, 2, 20, 10]
    code, _, err = command(
        capsys, "redesign", run, "--fasta", "genome.fa", *places[:2], "-o", "d.fa", "-q"
    )
    assert code == 2
    assert "redesign needs a model that draws whole windows, and this one draws blocks" in err
    assert len(err.strip().splitlines()) == 1
