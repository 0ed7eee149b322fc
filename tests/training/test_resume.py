"""The same command again gives every loss and every bit of the final weights."""

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
from tiny_training import TINY, read_losses, run_tiny

from genodiff.errors import CheckpointError, DataError, Interrupted, UsageError
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


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return bool(
        one["losses"] == other["losses"] and one["hashes"] == other["hashes"] and one["losses"]
    )


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
        assert same(result, calm), name
        assert not result["leftovers"]
        assert result["ends"][-1] == 0
    assert found["killed"]["ends"] == [-9, -9, -9, 0]
    assert found["killed"]["begun"][-1] >= 10
    assert found["signalled"]["ends"] == [143, 130, 138, 129, 0]
    assert all(
        begun >= at
        for begun, at in zip(found["signalled"]["begun"][1:], (4, 9, 14, 19), strict=True)
    )
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


def fasta(path: Path, seed: int = 1, extra: str = "") -> Path:
    letters = random.Random(seed).choices("ACGT", k=8000)
    path.write_text(f">one\n{''.join(letters)}\n{extra}")
    return path


@pytest.mark.parametrize("how", ["replaced", "grown", "cut"])
def test_data_that_changed_since_the_run_began_is_refused_with_both_hashes(tmp_path, how):
    genome, run = fasta(tmp_path / "in.fa"), tmp_path / "run"
    run_tiny(run, recipe="own", fasta=str(genome), steps=2)
    if how == "replaced":
        fasta(genome, seed=2)
    elif how == "grown":
        fasta(genome, extra=">two\nACGT\n")
    else:
        genome.write_text(genome.read_text()[:6000])
    with pytest.raises(
        DataError, match=r"in\.fa.*changed.*sha256 is [0-9a-f]{64}.*was [0-9a-f]{64}"
    ):
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
    before = {
        s: signal.getsignal(s)
        for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
    }
    run = tmp_path / "run"

    def interrupt() -> None:
        while not (run / "metrics.csv").exists() or len(read_losses(run)) < 3:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(
        Interrupted, match=r"SIGTERM at step \d+, its state is saved; run the same command"
    ) as caught:
        run_tiny(run, steps=10_000, checkpoint_every=10_000, validate_every=10_000)
    thread.join()
    assert caught.value.exit_code == 143
    assert list_steps(run) == [len(read_losses(run))]
    assert {s: signal.getsignal(s) for s in before} == before
    assert load_model(run).step == list_steps(run)[0]
