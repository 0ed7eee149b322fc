"""Curves in TensorBoard and Weights & Biases, over two sessions of one run."""

import json
import sys
from pathlib import Path

import pytest

from genodiff.errors import MachineError, UsageError
from genodiff.training.devices import LOGGERS, check_loggers
from genodiff.training.run import train
from tests.commands import command
from tests.tiny_training import read_rows, tiny

WORDS = [
    "toy", "--preset", "caduceus-ps-tiny", "--seq-len", "32", "--batch-size", "2",
    "--validate-every", "2", "--validate-windows", "2",
]  # fmt: skip


def scalars(run: Path) -> dict[str, dict[int, float]]:
    """What TensorBoard shows: the values of each curve by step."""
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    return {tag: {e.step: e.value for e in events.Scalars(tag)} for tag in events.Tags()["scalars"]}


def test_tensorboard_shows_what_metrics_csv_says_also_after_resuming(tmp_path, capsys):
    pytest.importorskip("tensorboard")
    run = tmp_path / "run"
    for steps in ("3", "5"):
        code, _, err = command(
            capsys, "train", *WORDS, "--max-steps", steps, "--out", run, "--logger", "tensorboard"
        )
        assert code == 0, err
        assert f"tensorboard --logdir {run / 'tensorboard'}" in err
    shown, written = scalars(run), read_rows(run)
    for name in ("loss_bits", "valid_bits", "lr", "grad_norm", "tokens"):
        expected = {int(r["step"]): float(r[name]) for r in written if r[name]}
        assert shown[name] == pytest.approx(expected, rel=1e-5), name
    assert len(shown["loss_bits"]) == 5
    settings = (run / "tensorboard" / "hparams.yaml").read_text()
    assert "seq_len: 32" in settings
    assert "caduceus" in settings


def test_curves_do_not_change_a_run(tmp_path):
    pytest.importorskip("tensorboard")
    config = tiny(steps=2)
    for name, loggers in (("plain", ()), ("told", ("csv", "tensorboard"))):
        train(config, tmp_path / name, loggers=loggers)
    plain, told = (read_rows(tmp_path / name) for name in ("plain", "told"))
    assert [r["loss_hex"] for r in plain] == [r["loss_hex"] for r in told]
    assert not (tmp_path / "plain" / "tensorboard").exists()


def test_wandb_is_offline_and_a_run_keeps_its_id(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    run = tmp_path / "run"
    for steps in (1, 2):
        train(tiny(steps=steps), run, loggers=("wandb",))
    id_ = json.loads((run / "wandb.json").read_text())["id"]
    sessions = list((run / "wandb").glob("offline-run-*"))
    assert len(sessions) == 2
    assert all(folder.name.endswith(id_) for folder in sessions)
    assert all(list(folder.glob("*.wandb")) for folder in sessions)


def test_a_package_that_is_missing_is_one_line(monkeypatch):
    for name in ("tensorboard", "wandb"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(MachineError, match=rf"--logger {name}.*genodiff\[loggers\]"):
            check_loggers([name])
    check_loggers(["csv"])
    with pytest.raises(UsageError, match="no logger 'wand'; did you mean 'wandb'"):
        check_loggers(["wand"])
    assert LOGGERS == ("csv", "tensorboard", "wandb")
