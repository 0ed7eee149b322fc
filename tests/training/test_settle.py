"""What a run leaves open is decided for the machine it begins on, and kept where it goes on."""

from pathlib import Path

import lightning.pytorch as pl
import pytest
import torch
from tiny_training import run_tiny, tiny

from genodiff.alphabet import DNA
from genodiff.data.loader import BatchStream
from genodiff.errors import UsageError
from genodiff.runs.config import RunConfig
from genodiff.runs.feed import open_feed, open_train_batches
from genodiff.runs.model import build_backbone
from genodiff.runs.resolve import read_config
from genodiff.training import settle
from genodiff.training.optimizer import adamw
from genodiff.training.run import open_loader
from genodiff.training.settle import count_workers, set_gpu_arithmetic, settle_config


def test_a_gpu_is_used_fast_with_nothing_set(tmp_path, monkeypatch):
    config = settle_config(tiny(), "cuda", tmp_path)
    assert config.train.precision == "bf16"
    monkeypatch.setattr(settle, "count_usable_cores", lambda: 16)
    monkeypatch.setattr(settle, "is_command_line", lambda: False)
    assert count_workers(config, "cuda") == 0  # a script's own process starts none unasked
    monkeypatch.setattr(settle, "is_command_line", lambda: True)
    for cores, workers in ((16, 4), (4, 3), (1, 1)):
        monkeypatch.setattr(settle, "count_usable_cores", lambda cores=cores: cores)
        assert count_workers(config, "cuda") == workers
    batches = open_train_batches(open_feed(config), config)
    loader = open_loader(BatchStream(batches, 0), count_workers(config, "cuda"), "cuda:0")
    assert loader.pin_memory
    assert loader.num_workers == 1
    backbone = build_backbone(config, DNA)
    assert adamw(backbone, config.optim).defaults["fused"]
    assert {p.dtype for p in backbone.parameters()} == {torch.float32}  # and its moments with it


def test_a_cpu_and_what_is_given_stay_as_they_are(tmp_path):
    config = settle_config(tiny(), "cpu", tmp_path)
    assert (config.train.precision, count_workers(config, "cpu")) == ("fp32", 0)
    given = settle_config(tiny(precision="fp32", workers=0), "cuda", tmp_path)
    assert (given.train.precision, count_workers(given, "cuda")) == ("fp32", 0)


def test_products_on_a_gpu_are_as_exact_as_their_dtype_says():
    products = torch.backends.cuda.matmul

    def read() -> tuple[bool, bool]:
        return products.allow_tf32, products.allow_bf16_reduced_precision_reduction

    products.allow_tf32 = True
    try:
        before = read()
        with set_gpu_arithmetic():
            assert read() == (False, False)
        assert read() == before == (True, True)
    finally:
        products.allow_tf32 = False


def test_deterministic_operations_are_asked_for_in_training_alone(tmp_path, monkeypatch):
    modes = []

    def fit(trainer: pl.Trainer, *given: object) -> None:
        modes.append(torch.get_deterministic_debug_mode())
        original(trainer, *given)

    original = pl.Trainer.fit
    monkeypatch.setattr(pl.Trainer, "fit", fit)
    for name in ("free", "fixed"):
        run_tiny(tmp_path / name, steps=3, deterministic=name == "fixed")
        assert torch.get_deterministic_debug_mode() == 0
        assert torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    assert modes == [0, 2]
    free, fixed = (
        sorted((tmp_path / name).glob("checkpoints/*/trainer.safetensors"))[-1].read_bytes()
        for name in ("free", "fixed")
    )
    assert free == fixed


def saved(run: Path) -> RunConfig:
    return read_config(run / "config.yaml")


def test_a_run_keeps_what_was_decided_at_its_beginning(tmp_path, monkeypatch):
    run = tmp_path / "run"
    monkeypatch.setattr("genodiff.training.settle._MOST_TOKENS", 512)
    run_tiny(run, steps=2, batch_size="auto", accumulate="auto")
    begun = saved(run)
    assert (begun.train.batch_size, begun.train.accumulate) == (8, 1)
    assert begun.train.precision == "fp32"
    monkeypatch.setattr("genodiff.training.settle._MOST_TOKENS", 2048)
    again = tiny(steps=3, batch_size="auto", accumulate="auto")
    assert settle_config(again, "cuda", run).train.precision == "fp32"
    assert run_tiny(run, steps=3, batch_size="auto", accumulate="auto").step == 3
    assert saved(run).train.batch_size == 8
    with pytest.raises(UsageError, match=r"batch_size: 4, not 8"):
        run_tiny(run, steps=3)


def test_several_processes_say_their_batch(tmp_path, monkeypatch):
    for name, value in (
        ("WORLD_SIZE", "2"), ("RANK", "0"), ("LOCAL_RANK", "0"), ("LOCAL_WORLD_SIZE", "2"),
        ("MASTER_ADDR", "localhost"), ("MASTER_PORT", "1"),
    ):  # fmt: skip
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match="cannot be auto"):
        settle_config(tiny(accumulate="auto"), "cpu", tmp_path)
