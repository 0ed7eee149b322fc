"""Law 26: training, loss and bound together, where the truth is known."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tiny_training import TINY

from genodiff.evaluation.evaluate import evaluate
from genodiff.runs.model import load_model
from genodiff.runs.resolve import resolve_config
from genodiff.training.run import train


@pytest.mark.slow
@pytest.mark.long
def test_a_trained_model_passes_the_markov_lines_and_never_the_source(tmp_path):
    config = resolve_config(
        {
            "recipe": "toy",
            "preset": "caduceus-ps-tiny",
            "seq_len": 256,
            "batch_size": 8,
            "steps": 300,
            "lr": 8e-3,
            "warmup_steps": 20,
            "validate_every": 300,
        }
    )
    result = train(config, tmp_path / "run")
    found = evaluate(load_model(tmp_path / "run"), "test", repeats=2)
    low, high = found["ci95_bits"]
    for order in ("0", "1", "2"):
        assert high < found["markov_bits"][order]
    assert high > found["source_bits"]
    difference = found["model_minus_source_bits"]
    assert difference["ci95"][1] > 0
    assert found["bits_per_base"] - found["source_bits"] < 0.5 * (
        found["markov_bits"]["0"] - found["source_bits"]
    )
    assert result.valid_bits is not None
    assert abs(result.valid_bits - found["bits_per_base"]) < 0.1
    assert low > 1.0


def start(out: Path, ranks: int, port: int) -> subprocess.Popen[str]:
    """`genodiff train`, thirty tiny steps, on so many gloo ranks."""
    given = [
        f"--{key.replace('_', '-')}={value}"
        for key, value in (TINY | {"steps": 30}).items()
        if key != "recipe"
    ]
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}",
               f"--master-port={port}"]  # fmt: skip
    command += ["-m", "genodiff", "train", "toy", *given, "--device=cpu", "--threads=1",
                f"--out={out}"]  # fmt: skip
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                            env=env, start_new_session=True)  # fmt: skip


def losses(run: Path) -> list[float]:
    return [
        float.fromhex(row.split(",")[4])
        for row in (run / "metrics.csv").read_text().splitlines()[1:]
    ]


@pytest.mark.slow
def test_two_ranks_train_as_one_does_stop_together_and_go_on(tmp_path):
    one = train(resolve_config(TINY | {"steps": 30}), tmp_path / "one")
    assert one.step == 30
    two = start(tmp_path / "two", 2, 29531)
    _, said = two.communicate(timeout=300)
    assert two.returncode == 0, said
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-5)
    again = start(tmp_path / "again", 2, 29532)
    while not (tmp_path / "again/metrics.csv").exists() or len(losses(tmp_path / "again")) < 8:
        assert again.poll() is None
        time.sleep(0.01)
    os.killpg(again.pid, signal.SIGTERM)
    again.communicate(timeout=120)
    again = start(tmp_path / "again", 2, 29533)
    _, said = again.communicate(timeout=300)
    assert again.returncode == 0, said
    assert "going on from step" in said
    assert losses(tmp_path / "again") == losses(tmp_path / "two")
    assert (tmp_path / "again/model.safetensors").read_bytes() == (
        tmp_path / "two/model.safetensors"
    ).read_bytes()
