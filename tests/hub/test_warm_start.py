"""`train --init`: diffusion training that begins from pretrained weights, provably, and resumes
exactly.
"""

import json
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from published_folders import assert_code, write_published
from tiny_run import genome_text

from genodiff.errors import CheckpointError
from genodiff.hub.adopt import adopt_network, read_warm_start
from genodiff.hub.source import read_source
from genodiff.runs.checkpoint import restore_state
from genodiff.runs.model import collect_tensors, load_model
from genodiff.runs.resolve import resolve_config
from genodiff.training.run import train

FLAGS = (
    "--seq-len 64 --batch-size 4 --checkpoint-every 2 --validate-windows 0 --threads 1 "
    "--device cpu -q"
).split()


@pytest.fixture
def fasta(tmp_path):
    path = tmp_path / "genome.fa"
    path.write_text(genome_text())
    return path


def begin(fasta: Path, init: Path, out: Path, *more: str, code: int = 0) -> None:
    assert_code(
        code, "train", "--fasta", str(fasta), "--init", str(init), "--out", str(out), *FLAGS, *more
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("form", ["published", "run", "file"])
@pytest.mark.parametrize("changes", [{}, {"rcps": False}], ids=["both strands", "one strand"])
def test_training_begins_from_the_weights(tmp_path, fasta, form, changes):
    theirs = write_published(tmp_path / "hf", **changes)
    init = tmp_path / {"published": "hf", "run": "imported", "file": "hf/model.safetensors"}[form]
    if form == "run":
        adopt_network(read_source(tmp_path / "hf"), init)
    # A learning rate of nothing to speak of: what is saved is what it began from.
    begin(fasta, init, tmp_path / "run", "--lr", "1e-12", "--weight-decay", "0", "--max-steps", "2",
          "--ema-decay", "0")  # fmt: skip
    model = load_model(tmp_path / "run")
    for name, tensor in collect_tensors(theirs).items():
        torch.testing.assert_close(collect_tensors(model.backbone)[name], tensor, rtol=0, atol=1e-9)
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert config["init_sha256"] == read_warm_start(init).digest
    session = json.loads((tmp_path / "run" / "provenance.json").read_text())["sessions"][0]
    assert session["init"]["sha256"] == config["init_sha256"]
    assert session["init"]["logits_differ"] <= 1e-6


def test_the_average_begins_from_the_weights_too(tmp_path, fasta):
    theirs = write_published(tmp_path / "hf")
    begin(fasta, tmp_path / "hf", tmp_path / "run", "--max-steps", "1")
    state = restore_state(tmp_path / "run")
    moved = collect_tensors(theirs)["embedding"]
    raw, average = state.tensors["weights.embedding"], state.weights["embedding"]
    share = (average - moved).abs().sum() / (raw - moved).abs().sum()
    assert 0 < share <= 1.0


@pytest.mark.slow
def test_a_run_resumes_exactly_without_its_source(tmp_path, fasta):
    write_published(tmp_path / "hf")
    begin(fasta, tmp_path / "hf", tmp_path / "whole", "--max-steps", "4")
    begin(fasta, tmp_path / "hf", tmp_path / "parts", "--max-steps", "2")
    shutil.move(tmp_path / "hf", tmp_path / "gone")
    # The horizon of a run that is stopped and prolonged is another, so both are prolonged.
    begin(fasta, tmp_path / "hf", tmp_path / "parts", "--max-steps", "4")
    assert_code(0, "train", "--resume", str(tmp_path / "parts"), "--max-steps", "6", *FLAGS)
    assert load_model(tmp_path / "parts").step == 6
    shutil.move(tmp_path / "gone", tmp_path / "hf")
    begin(fasta, tmp_path / "hf", tmp_path / "again", "--max-steps", "2")
    begin(fasta, tmp_path / "hf", tmp_path / "again", "--max-steps", "4")
    one = collect_tensors(load_model(tmp_path / "again").backbone)
    shutil.rmtree(tmp_path / "again" / "checkpoints" / "step_00000004")
    assert_code(0, "train", "--resume", str(tmp_path / "again"), "--max-steps", "4", *FLAGS)
    again = collect_tensors(load_model(tmp_path / "again").backbone)
    assert all(torch.equal(again[n], x) for n, x in one.items())


def test_the_weights_are_part_of_the_runs_identity(tmp_path, fasta, capsys):
    write_published(tmp_path / "hf")
    write_published(tmp_path / "other", seed=1)
    begin(fasta, tmp_path / "hf", tmp_path / "run", "--max-steps", "2")
    begin(fasta, tmp_path / "other", tmp_path / "run", "--max-steps", "2", code=2)
    assert "init_sha256" in capsys.readouterr().err
    assert_code(2, "train", "--fasta", str(fasta), "--out", str(tmp_path / "run"), *FLAGS,
                "--max-steps", "2")  # fmt: skip
    config = resolve_config(
        {"recipe": "own", "fasta": str(fasta), "init": "x", "init_sha256": "0" * 64}
    )
    with pytest.raises(CheckpointError, match="init_sha256"):
        train(config, tmp_path / "new")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--preset", "caduceus-ps-tiny"], "d_model: 12, not 64"),
        (["--d-model", "24"], "d_model: 12, not 24"),
        (["--preset", "dit-tiny"], "a caduceus, not a dit"),
    ],
)
def test_another_network_is_one_clear_line(tmp_path, fasta, words, said, capsys):
    write_published(tmp_path / "hf")
    begin(fasta, tmp_path / "hf", tmp_path / "run", "--max-steps", "2", *words, code=2)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert said in lines[0]
    assert not (tmp_path / "run").exists()


def test_weights_that_do_not_arrive_are_never_trained_from(tmp_path, fasta):
    write_published(tmp_path / "hf")
    start = read_warm_start(tmp_path / "hf")
    wrong = start._replace(tensors={n: x + 0.01 for n, x in start.tensors.items()})
    config = resolve_config(
        {
            "recipe": "own", "fasta": str(fasta), "init": start.path, "init_sha256": start.digest,
            "backbone": start.settings.model_dump(), "data": {"seq_len": 64},
            "train": {"max_steps": 1},
        }
    )  # fmt: skip
    with pytest.raises(CheckpointError, match="answers a probe otherwise than its source"):
        train(config, tmp_path / "run", start=wrong)


def test_a_training_setting_of_the_network_may_differ(tmp_path, fasta):
    write_published(tmp_path / "hf")
    begin(fasta, tmp_path / "hf", tmp_path / "run", "--max-steps", "1", "--backbone.checkpointing")
    assert load_model(tmp_path / "run").config.backbone.checkpointing


@pytest.mark.parametrize(
    ("files", "code", "said"),
    [
        ({"model.safetensors": b"", "config.json": b"{}"}, 4, ["without the state", "--init"]),
        ({"optimizer.pt": b"x"}, 4, ["optimizer.pt", "pickle"]),
        ({"trainer.json": b'{"step": 10, "rng": null}'}, 4, ["trainer.json", "exact", "random"]),
        ({"step-10/x": b"", "step-20/x": b""}, 4, ["step-10", "step-20", "usable"]),
        ({}, 2, ["config.yaml"]),
    ],
)
def test_what_is_in_the_way_of_going_on_is_said(tmp_path, files, code, said, capsys):
    for name, raw in files.items():
        (tmp_path / "ckpt" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "ckpt" / name).write_bytes(raw)
    assert_code(code, "train", "--resume", str(tmp_path / "ckpt"))
    error = capsys.readouterr().err
    assert all(word in error for word in said)
