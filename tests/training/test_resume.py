"""The same command again gives every loss and every bit of the final weights, on any threads."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny_training import TINY, read_losses, read_rows, run_tiny

from genodiff.errors import CheckpointError, DataError, Interrupted, UsageError
from genodiff.kernels import gemm
from genodiff.kernels.library import find_missing
from genodiff.runs.checkpoint import list_steps
from genodiff.runs.lock import hold_lock
from genodiff.runs.model import load_model

HARNESS = Path(__file__).parents[2] / "benchmarks" / "robustness" / "harness.py"


def play(root: Path, scenarios: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Let the harness play the scenarios; results by name."""
    done = subprocess.run(
        [sys.executable, str(HARNESS), str(root)],
        input=json.dumps(scenarios),
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        timeout=3600,
        check=True,
    )
    return {result["name"]: result for result in json.loads(done.stdout)}


LONG = TINY | {"steps": 30, "checkpoint_every": 5, "validate_every": 8}


@pytest.mark.slow
def test_killed_interrupted_corrupted_or_laid_out_anew_a_run_ends_the_same(tmp_path):
    found = play(
        tmp_path,
        [
            {"name": "calm", "config": LONG, "kills": []},
            {"name": "killed", "config": LONG, "kills": [{"step": 3}, {"step": 9}, {"step": 17}]},
            {
                "name": "signalled",
                "config": LONG,
                "kills": [
                    {"signal": s, "step": n}
                    for s, n in (("TERM", 4), ("INT", 9), ("USR1", 14), ("HUP", 19))
                ],
            },
            {
                "name": "corrupted",
                "config": LONG,
                "kills": [{"step": 12}, {"step": 22, "corrupt": "trainer.safetensors:0.5"}],
            },
            {
                "name": "workers",
                "config": LONG | {"workers": 2},
                "kills": [{"step": 8}, {"step": 18}],
                "changes": {"1": {"workers": 1}, "2": {"workers": 0}},
            },
            {"name": "in a write", "config": LONG, "kills": [{"crash_at": n} for n in (60, 80)]},
        ],
    )
    calm = found["calm"]
    assert len(calm["losses"]) == 30
    assert [row[0] for row in calm["losses"] if row[4]] == [8, 16, 24, 30]
    for name, result in found.items():
        assert (result["losses"], result["hashes"]) == (calm["losses"], calm["hashes"]), name
        assert not result["leftovers"]
        assert result["ends"][-1] == 0
    assert found["killed"]["ends"] == [-9, -9, -9, 0]
    assert found["killed"]["begun"][-1] >= 10
    assert found["signalled"]["ends"] == [143, 130, 138, 129, 0]
    begun = found["signalled"]["begun"][1:]
    assert all(first >= at for first, at in zip(begun, (4, 9, 14, 19), strict=True))
    assert len(found["corrupted"]["corrupt"]) == 1
    assert found["in a write"]["ends"] == [-9, -9, 0]


@pytest.mark.few(1)
@pytest.mark.parametrize("objective", [{}, {"block": 16, "strands": "single"}], ids=str)
def test_two_and_two_steps_are_four(tmp_path, objective):
    settings = {"lr_schedule": "constant", "warmup_steps": 0} | objective
    run_tiny(tmp_path / "four", steps=4, **settings)
    run_tiny(tmp_path / "twice", steps=2, **settings)
    again = run_tiny(tmp_path / "twice", steps=4, **settings)
    assert (again.step, again.already_done) == (4, False)
    assert read_losses(tmp_path / "four") == read_losses(tmp_path / "twice")
    for name in ("model.safetensors", "checkpoints/step_00000004/trainer.safetensors"):
        assert (tmp_path / "four" / name).read_bytes() == (tmp_path / "twice" / name).read_bytes()


def test_a_finished_run_says_so_and_writes_nothing(tmp_path):
    run = tmp_path / "run"
    run_tiny(run)
    before = {p: p.stat().st_mtime_ns for p in run.rglob("*") if p.name != ".lock"}
    again = run_tiny(run)
    assert (again.step, again.already_done) == (6, True)
    assert {p: p.stat().st_mtime_ns for p in run.rglob("*") if p.name != ".lock"} == before


def test_a_run_that_died_just_before_its_model_was_published_publishes_it(tmp_path):
    run = tmp_path / "run"
    run_tiny(run)
    weights = (run / "model.safetensors").read_bytes()
    (run / "model.safetensors").write_bytes(b"torn")
    (run / "model.json").unlink()
    assert run_tiny(run).already_done
    assert (run / "model.safetensors").read_bytes() == weights
    assert load_model(run).step == 6


def test_another_configuration_in_the_same_folder_is_refused_and_told_apart(tmp_path):
    run = tmp_path / "run"
    run_tiny(run, steps=2)
    before = (run / "config.yaml").read_text()
    with pytest.raises(UsageError, match=r"optim\.lr: 0\.5, not 0\.002"):
        run_tiny(run, steps=4, lr=0.5)
    assert (run / "config.yaml").read_text() == before
    assert list_steps(run) == [2]


def test_a_folder_in_use_is_refused(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    with hold_lock(run):
        pid = os.fork()
        if not pid:
            code = 1
            try:
                run_tiny(run)
            except UsageError as error:
                code = 7 if f"pid {os.getppid()}" in str(error) else 8
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert [p.name for p in run.iterdir()] == [".lock"]


def fasta(path: Path, seed: int = 1) -> Path:
    letters = random.Random(seed).choices("ACGT", k=8000)
    path.write_text(f">one\n{''.join(letters)}\n")
    return path


def test_data_that_changed_since_the_run_began_is_refused_with_both_hashes(tmp_path):
    genome, run = fasta(tmp_path / "in.fa"), tmp_path / "run"
    run_tiny(run, recipe="own", fasta=str(genome), steps=2)
    fasta(genome, seed=2)
    said = r"in\.fa.*changed.*sha256 is [0-9a-f]{64}.*was [0-9a-f]{64}"
    with pytest.raises(DataError, match=said):
        run_tiny(run, recipe="own", fasta=str(genome), steps=4)
    assert list_steps(run) == [2]


def test_the_same_data_under_another_name_is_the_same_data(tmp_path):
    run = tmp_path / "run"
    run_tiny(run, recipe="own", fasta=str(fasta(tmp_path / "in.fa")), steps=2)
    (tmp_path / "in.fa").rename(tmp_path / "moved.fa")
    assert run_tiny(run, recipe="own", fasta=str(tmp_path / "moved.fa"), steps=4).step == 4


def test_checkpoints_without_their_configuration_are_not_trained_over(tmp_path):
    run = tmp_path / "run"
    run_tiny(run)
    (run / "config.yaml").unlink()
    with pytest.raises(CheckpointError, match=r"config\.yaml.*missing"):
        run_tiny(run)


def test_a_run_that_cannot_begin_leaves_no_folder(tmp_path):
    with pytest.raises(DataError, match=r"none\.fa"):
        run_tiny(tmp_path / "run", recipe="own", fasta=str(tmp_path / "none.fa"))
    assert not (tmp_path / "run").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is a file, not a directory"):
        run_tiny(tmp_path / "file")


def test_a_signal_stops_at_a_steps_end_and_the_handlers_are_given_back(tmp_path):
    watched = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
    before = {s: signal.getsignal(s) for s in watched}
    run = tmp_path / "run"

    def interrupt() -> None:
        while not (run / "metrics.csv").exists() or len(read_losses(run)) < 3:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=interrupt)
    thread.start()
    said = r"SIGTERM at step \d+, its state is saved; run the same command"
    with pytest.raises(Interrupted, match=said) as caught:
        run_tiny(run, steps=10_000, checkpoint_every=10_000, validate_every=10_000)
    thread.join()
    assert caught.value.exit_code == 143
    assert list_steps(run) == [len(read_losses(run))]
    assert {s: signal.getsignal(s) for s in before} == before
    assert load_model(run).step == list_steps(run)[0]


@pytest.mark.skipif(
    find_missing() is not None,
    reason="torch's scan runs here, whose bits depend on the number of threads",
)
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("preset", "routed"),
    [("caduceus-ps-tiny", True), ("caduceus-ph-tiny", True), ("caduceus-ph-tiny", False)],
)
def test_a_run_does_not_depend_on_the_number_of_threads(
    preset, routed, threads, tmp_path, monkeypatch
):
    if not routed:
        monkeypatch.setattr(gemm, "routing", lambda: (False, "torch's default"))
    found = []
    for n in threads:
        torch.set_num_threads(n)
        out = tmp_path / f"{n}"
        run_tiny(
            out, preset=preset, d_model=40, seq_len=512, batch_size=8, steps=4, validate_every=2
        )
        losses = [(r["loss_hex"], r["grad_norm"], r["valid_bits"]) for r in read_rows(out)]
        found.append((losses, load_file(out / "model.safetensors")))
    (losses, weights), *others = found
    assert len(losses) == 4
    for other_losses, other_weights in others:
        assert other_losses == losses
        assert all(torch.equal(other_weights[name], weights[name]) for name in weights)
