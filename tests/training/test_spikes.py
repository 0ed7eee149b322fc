"""Spikes of the loss are told from noise, and the policy is obeyed, by killed runs too."""

import logging
from typing import Any

import numpy as np
import pytest
import torch
from tiny_training import read_rows, run_tiny

from genodiff.errors import GenodiffError
from genodiff.runs.checkpoint import list_steps, locate_checkpoint
from genodiff.training import module
from genodiff.training.module import SpikeWatch


def test_noise_with_heavy_tails_and_a_falling_loss_are_no_spikes_and_jumps_are():
    draw = np.random.default_rng(1)
    watch = SpikeWatch()
    for step in range(5000):
        bits = 1.9 + 4 / (1 + step) + 0.01 * draw.standard_t(8)
        assert watch.measure(bits) is None
        watch.remember(bits)
    assert watch.measure(2.2) is not None
    assert watch.measure(float(np.median(watch.recent)) + 0.05) is None


def test_nothing_is_judged_before_enough_steps_nor_where_all_steps_are_alike():
    watch = SpikeWatch([2.0] * (module.FIRST - 1))
    assert watch.measure(9.0) is None
    watch.remember(float("nan"))
    assert watch.measure(9.0) is None
    watch.remember(2.0)
    assert watch.measure(9.0) is not None
    assert watch.measure(2.0 + 1e-6) is None


class Jump:
    """Stands before the loss and raises that of the batches with these numbers."""

    def __init__(self, steps: set[int], rows: int = 4) -> None:
        self.steps, self.rows, self.real = steps, rows, module.batch_loss

    def __call__(self, diffusion: Any, backbone: torch.nn.Module, batch: Any, *more: Any) -> Any:
        terms, weights = self.real(diffusion, backbone, batch, *more)
        if int(batch.index[0]) // self.rows in self.steps:
            terms = terms._replace(nats=terms.nats * 9, nats_unweighted=terms.nats_unweighted * 9)
        return terms, weights


@pytest.fixture(autouse=True)
def early(monkeypatch):
    """Tiny runs are judged from their sixth step on."""
    monkeypatch.setattr(module, "FIRST", 5)


SHORT: dict[str, Any] = {"steps": 10, "checkpoint_every": 2, "keep": 9, "lr": 1e-4}


@pytest.mark.parametrize("policy", ["warn", "skip"])
def test_a_spike_is_told_and_left_out_where_asked(tmp_path, monkeypatch, caplog, policy):
    monkeypatch.setattr(module, "batch_loss", Jump({7}))
    run_tiny(tmp_path / "run", **SHORT, on_spike=policy)
    assert "step 8: the loss jumped from about" in caplog.text
    assert "windows 28 to 31" in caplog.text
    told = [row["skipped"] for row in read_rows(tmp_path / "run")]
    assert told == ["0"] * 7 + [str(int(policy == "skip"))] + ["0"] * 2


def test_stop_leaves_the_last_checkpoint_from_which_another_policy_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "batch_loss", Jump({7}))
    with pytest.raises(GenodiffError, match=r"step 8: the loss jumped.*the last checkpoint"):
        run_tiny(tmp_path / "run", **SHORT, on_spike="stop")
    assert list_steps(tmp_path / "run") == [6, 4, 2]
    assert run_tiny(tmp_path / "run", **SHORT, on_spike="skip").step == 10


@pytest.mark.slow
def test_rewind_goes_back_and_past_the_batches_and_so_does_a_run_that_was_interrupted(
    tmp_path, monkeypatch, caplog
):
    jump = Jump({7})
    monkeypatch.setattr(module, "batch_loss", jump)
    caplog.set_level(logging.INFO)
    run_tiny(tmp_path / "calm", **SHORT, on_spike="rewind")
    assert "back to step 6, and past these batches" in caplog.text
    found = read_rows(tmp_path / "calm")
    assert [int(row["step"]) for row in found] == list(range(1, 11))
    assert all(row["skipped"] == "0" for row in found)

    def killed(diffusion: Any, backbone: Any, batch: Any, *more: Any) -> Any:
        if int(batch.index[0]) // 4 == 9:
            raise KeyboardInterrupt
        return jump(diffusion, backbone, batch, *more)

    monkeypatch.setattr(module, "batch_loss", killed)
    with pytest.raises((KeyboardInterrupt, SystemExit, GenodiffError)):
        run_tiny(tmp_path / "killed", **SHORT, on_spike="rewind")
    monkeypatch.setattr(module, "batch_loss", jump)
    run_tiny(tmp_path / "killed", **SHORT, on_spike="rewind")
    assert [r["loss_hex"] for r in read_rows(tmp_path / "killed")] == [r["loss_hex"] for r in found]
    for name in ("model.safetensors", "trainer.safetensors"):
        one, other = (locate_checkpoint(tmp_path / run, 10) / name for run in ("calm", "killed"))
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    ("steps", "more", "said"),
    [
        (range(7, 99), {"max_skipped": 2}, "went back 2 times before, the maximum"),
        ({7}, {"checkpoint_every": 99}, "there is no checkpoint to return to"),
    ],
)
def test_a_run_that_cannot_go_back_any_more_ends(tmp_path, monkeypatch, steps, more, said):
    monkeypatch.setattr(module, "batch_loss", Jump(set(steps)))
    with pytest.raises(GenodiffError, match=said):
        run_tiny(tmp_path / "run", **SHORT | more, on_spike="rewind")
