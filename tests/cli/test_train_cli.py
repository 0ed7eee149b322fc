"""`genodiff train`, `config` and `checkpoint` as a user meets them."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml

from genodiff.alphabet import DNA
from genodiff.backbones.backbone import PRESETS
from genodiff.runs.resolve import list_sections, list_short_names, resolve_config
from tests.commands import check_refused, command, exit_code

TINY = (
    "--preset caduceus-ps-tiny --d-model 16 --n-layer 1 --d-state 4 --seq-len 64 --batch-size 4 "
    "--checkpoint-every 2 "
    "--validate-every 3 --validate-windows 8 --threads 1 --device cpu"
).split()


@pytest.mark.slow
def test_train_then_train_again_then_check(tmp_path, capsys):
    run = tmp_path / "run"
    assert exit_code("train", "toy", *TINY, "--steps", "4", "--out", str(run)) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "done at step 4" in said.err
    assert "validation" in said.err
    names = {p.name for p in run.iterdir()}
    wanted = {"config.yaml", "metrics.csv", "checkpoints", "model.safetensors", "model.json",
              "provenance.json"}  # fmt: skip
    assert wanted <= names
    assert exit_code("train", "toy", *TINY, "--steps", "4", "--out", str(run)) == 0
    assert "already at step 4 of 4" in capsys.readouterr().err
    assert exit_code("train", "--resume", str(run)) == 0
    assert exit_code("train", "--config", str(run / "config.yaml"), "--out", str(run)) == 0
    assert exit_code("train", "--resume", str(run), "--max-steps", "5") == 0
    assert "done at step 5" in capsys.readouterr().err
    assert exit_code("checkpoint", "check", str(run), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["step"], found["checkpoints"]) == (5, [5, 4])
    provenance = json.loads((run / "provenance.json").read_text())
    assert [(s["from_step"], s["to_step"]) for s in provenance["sessions"]] == [(0, 4), (4, 5)]
    assert provenance["data"]["fingerprint"]
    (run / "checkpoints" / "step_00000004" / "trainer.json").write_text("{}")
    code, out, err = command(capsys, "checkpoint", "check", run)
    assert (code, out, err.count("error: "), "trainer.json" in err) == (4, "", 1, True)


def test_a_users_own_fasta_needs_no_recipe(here, capsys):
    Path("mine.fa").write_text(">a\n" + "ACGTTGCA" * 600 + "\n")
    assert exit_code("train", "mine.fa", *TINY, "--steps", "9000", "--plan") == 0
    assert re.search(
        r"quicker +--max-steps \d+: each base is then read 100 times", capsys.readouterr().out
    )
    assert exit_code("train", "--fasta", "mine.fa", *TINY, "--steps", "2", "--plan") == 0
    assert "quicker" not in capsys.readouterr().out
    Path("zipped.fa.gz").write_bytes(gzip.compress(Path("mine.fa").read_bytes()))
    Path("odd.name").write_bytes(Path("mine.fa").read_bytes())  # known by its content
    for source in (["--fasta", "mine.fa"], ["zipped.fa.gz"], ["odd.name"]):
        assert exit_code("train", *source, *TINY, "--steps", "1") == 0
        run = Path("runs", f"{source[-1].split('.')[0]}-caduceus")
        written = yaml.safe_load((run / "config.yaml").read_text())
        assert (written["recipe"], written["fasta"]) == ("own", str(here / source[-1]))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_cuda_where_there_is_none_is_the_machines_fault(here, capsys):
    check_refused(capsys, ["train", "toy", "--device", "cuda"], 5, "cuda")


def test_half_a_torchrun_environment_is_refused(here, monkeypatch, capsys):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("RANK", raising=False)
    check_refused(capsys, ["train", "toy", *TINY], 2, "RANK")


def test_the_plan_is_told(here, capsys):
    assert exit_code("train", "hg38", *TINY, "--steps", "50", "--plan", "--json") == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["parameters"] == resolve_config(
        {"recipe": "hg38", "d_model": 16, "n_layer": 1, "d_state": 4}
    ).backbone.n_parameters(16)
    assert (plan["tokens_per_step"], plan["steps"], plan["tokens"]) == (256, 50, 12800)
    assert plan["seconds"] > 0
    assert plan["memory_bytes"] > 0
    words = ("--steps", "50", "--objective", "d3pm", "--plan", "--json")
    assert exit_code("train", "hg38", *TINY, *words) == 0
    twice = json.loads(capsys.readouterr().out)  # D3PM's reconstruction is a second pass
    assert twice["flop"] == 2 * plan["flop"]
    assert twice["memory_bytes"] > 1.5 * plan["memory_bytes"]
    assert exit_code("train", "hg38", *TINY, "--max-minutes", "0.5", "--plan") == 0
    assert "parameters" in capsys.readouterr().out


def test_every_setting_has_a_flag_that_sets_it(capsys):
    before, flags = resolve_config({"recipe": "toy"}), list[str]()
    for section, settings in list_sections().items():
        for name in settings.keys() & type(getattr(before, section)).model_fields.keys():
            value = getattr(getattr(before, section), name)
            if isinstance(value, bool | dict | tuple) or name in ("kind", "objective"):
                continue
            given = "null" if value is None else str(value)
            flags += [f"--{section}.{name.replace('_', '-')}", given]
    assert len(flags) > 80
    assert exit_code("config", "show", "toy", *flags) == 0
    assert resolve_config(yaml.safe_load(capsys.readouterr().out)) == before
    words = "--betas 0.5 0.6 --no-exact-count --schedule-options.eps 0.25 --lr 3e-4"
    assert exit_code("config", "show", *words.split()) == 0
    shown = resolve_config(yaml.safe_load(capsys.readouterr().out))
    assert (shown.optim.betas, shown.optim.lr) == ((0.5, 0.6), 3e-4)
    assert (shown.diffusion.exact_count, shown.diffusion.schedule_options) == (False, {"eps": 0.25})
    assert "lr" in list_short_names()


def test_every_preset_is_listed_with_the_size_of_the_network_that_it_builds(capsys):
    assert exit_code("config", "presets", "--json") == 0
    rows = {row["preset"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert list(rows) == list(PRESETS)
    for name in ("caduceus-ps-tiny", "mamba-tiny", "dit-470k", "dimamba-470k"):
        built = PRESETS[name].build(DNA.padded_size, DNA.complement)
        assert rows[name]["parameters"] == sum(
            {p.data_ptr(): p.numel() for p in built.parameters()}.values()
        )
    assert exit_code("config", "presets") == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[-5:] == ["weights", "on", "DNA", "bytes", "gpt2"]
    shown = {
        line.split()[0]: [int(n.replace(",", "")) for n in line.split()[-3:]] for line in lines
    }
    assert shown == {name: list(row["parameters_of"].values()) for name, row in rows.items()}
    assert [n[0] for n in shown.values()] == sorted(n[0] for n in shown.values())
    assert shown["dit-tiny"][0] > 300 * shown["caduceus-ps-tiny"][0]  # names alone do not say it


def test_the_schema_knows_every_setting(capsys):
    assert exit_code("config", "schema") == 0
    schema = json.loads(capsys.readouterr().out)
    known = schema["properties"].keys()
    assert known >= {"recipe", "data", "backbone", "diffusion", "optim", "train"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("seq_len: 128\nsteps: 20\nseed: 1\nmodel: caduceus\nd_model: 8\nn_layer: 1\n", 0),
        ("recipe: toy\noptim:\n  lr: 0.1\n", 0),
        ("recipe: toi\n", 2),
        ("seq_len: 128\nbacth_size: 4\n", 2),
        ("lr: .inf\n", 2),
        ("!!python/object/apply:os.system ['true']\n", 2),
        ("", 2),
        ("lr: 1\nlr: 2\n", 2),
    ],
)
def test_config_check_judges_a_file(tmp_path, capsys, text, code):
    path = tmp_path / "run.yaml"
    path.write_text(text)
    assert exit_code("config", "check", str(path)) == code
    said = capsys.readouterr()
    assert "run.yaml" in said.err or "toi" in said.err
    assert [p.name for p in tmp_path.iterdir()] == ["run.yaml"]


@pytest.mark.slow
def test_a_terminal_that_says_stop_twice_is_obeyed_at_once(tmp_path):
    run = tmp_path / "run"
    words = ["train", "toy", *TINY, "--steps", "100000", "--out", str(run)]
    env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": env}
    process = subprocess.Popen([sys.executable, "-m", "genodiff", *words], **pipes)
    while not (run / "checkpoints" / "step_00000002").exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    process.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    for _ in range(1000):
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGINT)
        time.sleep(0.01)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    assert exit_code("checkpoint", "check", str(run)) == 0 or not (run / "model.json").exists()
