"""`--devices N`: ranks share a step, and the run survives the death of any of them."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_training import read_losses, run_tiny, tiny

from benchmarks.robustness.harness import find_ranks
from genodiff.errors import GenodiffError, Interrupted, MachineError, UsageError
from genodiff.training import launch
from genodiff.training.devices import check_devices
from genodiff.training.faults import name_fault
from genodiff.training.run import RunResult

SETTINGS = [
    "toy", "--device", "cpu", "--preset", "caduceus-ps-tiny", "--d-model", "16", "--n-layer", "1",
    "--d-state", "4", "--seq-len", "64", "--batch-size", "4", "--validate-windows", "8",
    "--validate-every", "3",
]  # fmt: skip


def train(out: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "genodiff", "train", *SETTINGS, "--out", str(out), *words]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)


def wait_for_step(run: Path, step: int) -> None:
    for _ in range(2400):
        if (run / "metrics.csv").exists() and len(read_losses(run)) >= step:
            return
        time.sleep(0.05)
    raise AssertionError(f"{run} never came to step {step}")


def one(rank: int, step: int = 7) -> RunResult:
    return RunResult(Path("run"), step + rank, 1.0, 2, None, False)


def test_the_first_ranks_result_is_the_runs():
    assert launch._judge({0: one(0), 1: one(1)}, [], []).step == 7


def test_a_rank_that_died_is_named_before_what_the_others_say_of_it():
    lost = GenodiffError("the connection to another rank broke")
    with pytest.raises(MachineError, match="rank 1 was killed by SIGKILL; the other ranks"):
        launch._judge({0: lost, 1: None}, [f"rank 1 {launch._describe_end(-9)}"], [])
    with pytest.raises(GenodiffError, match="connection"):
        launch._judge({0: lost, 1: one(1)}, [], [])


def begin_rank(number: int, act: Callable[[], object]) -> launch._Rank:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=act, daemon=True)
    process.start()
    sender.close()
    return launch._Rank(number, process, receiver)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_killed_rank_is_named_at_once_whatever_the_others_do():
    ranks = [
        begin_rank(0, lambda: time.sleep(60)),
        begin_rank(1, lambda: os.kill(os.getpid(), signal.SIGKILL)),
    ]
    began = time.monotonic()
    try:
        with pytest.raises(MachineError, match="rank 1 was killed by SIGKILL; the other ranks"):
            launch._watch(ranks, [])
        assert time.monotonic() - began < 2
    finally:
        ranks[0].process.kill()
        ranks[0].process.join()


def test_a_signal_goes_before_everything():
    saved = Interrupted("saved at step 3", 15)
    with pytest.raises(Interrupted, match="saved at step 3") as caught:
        launch._judge({0: saved, 1: saved}, [], [15])
    assert caught.value.exit_code == 143
    with pytest.raises(Interrupted, match="SIGTERM before the ranks could save"):
        launch._judge({0: None, 1: None}, ["rank 0 was killed by SIGTERM"], [15])


@pytest.mark.parametrize(
    ("size", "message"),
    [(0, "below 1"), (3, "cannot be divided among 3 ranks"), (2, "torchrun exclude each other")],
)
def test_ranks_that_cannot_be_are_refused(monkeypatch, size, message):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    if "torchrun" in message:
        monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match=message):
        check_devices(size, tiny())


def test_several_ranks_need_a_batch_that_is_a_number(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(UsageError, match="cannot be auto with several"):
        check_devices(2, tiny(batch_size="auto"))
    check_devices(1, tiny(batch_size="auto"))


@pytest.mark.parametrize(
    ("said", "kind", "named"),
    [
        ("[../gloo/transport/tcp/pair.cc:534] Connection closed by peer [::1]:39", GenodiffError,
         "the connection to another rank broke"),
        ("Gloo connectFullMesh failed with [pair.cc:152] timed out connecting: SO_ERROR: refused",
         GenodiffError, "the connection to another rank broke"),
        ("cumsum_cuda_kernel does not have a deterministic implementation, but you set",
         MachineError, "--deterministic: torch's cumsum_cuda_kernel has nothing"),
    ],
)  # fmt: skip
def test_what_torch_says_of_a_fault_is_one_line(said, kind, named):
    found = name_fault(RuntimeError(said))
    assert isinstance(found, kind)
    assert named in str(found)


@pytest.mark.slow
def test_two_ranks_are_one_and_a_signal_or_a_killed_rank_loses_nothing(tmp_path):
    run_tiny(tmp_path / "one", steps=12, checkpoint_every=3)
    out = tmp_path / "two"
    words = ["--max-steps", "12", "--checkpoint-every", "3", "--devices", "2"]
    stopped = train(out, *words)
    wait_for_step(out, 2)
    stopped.send_signal(signal.SIGTERM)
    said = stopped.communicate(timeout=120)[1]
    assert stopped.returncode == 143, said
    assert "its state is saved" in said
    broken = train(out, *words)
    wait_for_step(out, 7)
    ranks = find_ranks(broken.pid)
    assert len(ranks) == 2
    os.kill(ranks[1], signal.SIGKILL)
    said = broken.communicate(timeout=120)[1]
    assert broken.returncode == 5, said
    assert "rank 1 was killed by SIGKILL" in said
    assert not find_ranks(broken.pid)
    again = train(out, *words)
    again.communicate(timeout=600)
    assert again.returncode == 0
    expected, found = read_losses(tmp_path / "one"), read_losses(out)
    assert len(found) == 12
    for a, b in zip(expected, found, strict=True):
        assert float.fromhex(a) == pytest.approx(float.fromhex(b), rel=1e-5)
