"""The memory of a step: what is counted against what autograd keeps, and how batches are fitted."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from fake_gpu import Memory, fake_gpu
from tiny_training import tiny

from genodiff.alphabet import DNA
from genodiff.api.train import TrainRequest
from genodiff.backbones.backbone import PRESETS
from genodiff.errors import MachineError
from genodiff.runs.config import RunConfig
from genodiff.runs.model import build_backbone
from genodiff.runs.resolve import resolve_config
from genodiff.training import settle
from genodiff.training.settle import count_footprint, fit_batch, measure_footprint

QUEUE = Path(__file__).parents[2] / "benchmarks" / "gpu" / "QUEUE.md"
GPU = 80e9


def window_bytes(settings: Any, rows: int, length: int, precision: str) -> tuple[float, float]:
    """Bytes of a window: what autograd keeps of the network, and the most that a step holds.

    Of twice the rows less once, so that weights do not count.
    """
    few, many = (step_bytes(settings, n, length, precision) for n in (rows, 2 * rows))
    return (many[0] - few[0]) / rows, (many[1] - few[1]) / rows


def step_bytes(settings: Any, rows: int, length: int, precision: str) -> tuple[int, int]:
    """The same of a step with so many rows, weights included."""
    with fake_gpu(precision):
        network = settings.build(DNA.padded_size, DNA.complement if settings.paired else None)
        tokens = torch.zeros(rows, length, dtype=torch.int64)
        kept: dict[int, torch.Tensor] = {}

        def note(tensor: torch.Tensor) -> torch.Tensor:
            kept[tensor.untyped_storage()._cdata] = tensor
            return tensor

        with Memory() as memory:
            with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
                logits = network(tokens)
            own = {p.untyped_storage()._cdata for p in network.parameters()}
            found = sum(t.untyped_storage().nbytes() for at, t in kept.items() if at not in own)
            kept.clear()
            loss = logits.float().logsumexp(-1).mean()
            del logits
            loss.backward()
        return found, memory.peak


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "length", [1024, *(pytest.param(n, marks=pytest.mark.slow) for n in (8192, 131072))]
)
@pytest.mark.parametrize(
    ("preset", "precision", "more"),
    [
        ("caduceus-ph-tiny", "bf16", {}),
        ("caduceus-ps-470k", "bf16", {}),
        ("caduceus-ps-470k", "bf16", {"recompute_states": True}),
        ("caduceus-ph-1.9m", "fp32", {}),
        ("caduceus-ps-7.7m", "bf16", {}),
        ("mamba-470k", "bf16", {"recompute_states": True}),
        ("mamba-470k", "bf16", {}),
        ("dit-tiny", "bf16", {}),
    ],
)
def test_what_a_step_on_a_gpu_keeps_is_what_is_counted(preset, precision, more, length):
    layers = {"n_layer": 2}  # they are alike
    settings = PRESETS[preset].model_copy(update=layers | more)
    counted = settings.count_step_bytes(length, 2 if precision == "bf16" else 4)
    kept, most = window_bytes(settings, max(1, 4096 // length), length, precision)
    assert counted.kept * length == pytest.approx(kept, rel=0.01)
    assert (counted.kept + counted.working) * length == pytest.approx(most, rel=0.05)


def test_a_network_that_other_kernels_run_is_not_counted():
    settings = PRESETS["caduceus-ps-tiny"]
    for change in ({"norm": "layer"}, {"tie_directions": False}):
        assert settings.model_copy(update=change).count_step_bytes(1024, 2) is None
    other = resolve_config({"recipe": "toy", "preset": "dimamba-470k"})
    assert count_footprint(other, "bf16") is None


def test_recomputed_blocks_keep_their_inputs():
    settings = PRESETS["caduceus-ps-7.7m"]
    whole, less = (
        settings.model_copy(update={"checkpointing": c}).count_step_bytes(1024, 2)
        for c in (False, True)
    )
    assert less.kept < whole.kept / 4
    assert less.kept > 2 * 16 * 4 * 256


def test_a_gpu_recomputes_states_before_it_recomputes_blocks(monkeypatch):
    config = tiny(batch_size="auto", n_layer=8, seq_len=256)
    needed = []
    for change in ({}, {"recompute_states": True}, {"checkpointing": True}):
        backbone = config.backbone.model_copy(update=change)
        found = count_footprint(config.model_copy(update={"backbone": backbone}), "fp32")
        needed.append(found.count_bytes(1))
    assert needed == sorted(needed, reverse=True)
    monkeypatch.setattr(settle, "measure_footprint", lambda c, *_: count_footprint(c, "fp32"))
    monkeypatch.setattr(torch.nn.Module, "to", lambda self, device: self)
    chosen = []
    for need in needed:
        free = int(need / 0.9) + 1000
        monkeypatch.setattr(settle, "find_free_bytes", lambda device, free=free: free)
        backbone = fit_batch(config, "cuda").backbone
        chosen.append((backbone.recompute_states, backbone.checkpointing))  # type: ignore[attr-defined]
    assert chosen == [(False, False), (True, False), (False, True)]


def commands() -> list[str]:
    return re.findall(r"`genodiff (train [^`]+)`", QUEUE.read_text())


def planned(command: str) -> RunConfig:
    words = shlex.split(command)[1:]
    flags: dict[str, Any] = {}
    while words:
        word = words.pop(0)
        if word.startswith("--"):
            flags[word[2:].replace("-", "_")] = words.pop(0)
        else:
            flags["recipe"] = word
    recipe = flags.pop("recipe", None)
    file = flags.pop("config", None)
    if file is not None:
        file = QUEUE.parents[2] / file
    settings = {name: yaml.safe_load(value) for name, value in flags.items()}
    return TrainRequest.make(recipe, config=file, **settings).planned.config


@pytest.mark.parametrize("command", commands())
def test_what_is_queued_for_a_gpu_fits_into_it(command):
    config = planned(command)
    windows = config.train.batch_size // config.train.accumulate
    counted = count_footprint(config, config.train.precision)
    assert 1e9 < counted.count_bytes(windows) < 0.9 * GPU, counted.count_bytes(windows) / 1e9


def fitted(monkeypatch: pytest.MonkeyPatch, windows: float, **settings: Any) -> RunConfig:
    """The batch where so many windows fit at a time."""
    config = tiny(**settings)
    backbone = build_backbone(config, DNA)
    one = measure_footprint(config, backbone, "cpu")
    free = int((one.fixed + windows * one.per_window) / 0.9) + 1
    monkeypatch.setattr(settle, "find_free_bytes", lambda device: free)
    return fit_batch(config, "cpu")


@pytest.mark.parametrize(
    ("windows", "given", "chosen"),
    [
        (1e9, {"batch_size": "auto"}, (2048, 1)),  # 131,072 tokens
        (100, {"batch_size": "auto"}, (64, 1)),
        (100, {"batch_size": "auto", "accumulate": 4}, (256, 4)),
        (1.5, {"batch_size": "auto"}, (1, 1)),
        (100, {"batch_size": 96, "accumulate": "auto"}, (96, 1)),
        (25, {"batch_size": 96, "accumulate": "auto"}, (96, 4)),
        (100, {"batch_size": "auto", "accumulate": "auto"}, (2048, 32)),
    ],
)
def test_a_batch_that_is_left_open_fits_the_free_memory(monkeypatch, windows, given, chosen):
    train = fitted(monkeypatch, windows, **given).train
    assert (train.batch_size, train.accumulate) == chosen


def test_blocks_are_recomputed_only_where_nothing_fits_otherwise(monkeypatch):
    long = {"batch_size": "auto", "n_layer": 8, "seq_len": 256}
    assert not fitted(monkeypatch, 1.5, **long).backbone.checkpointing  # type: ignore[attr-defined]
    found = fitted(monkeypatch, 0.8, **long)
    assert found.backbone.checkpointing  # type: ignore[attr-defined]
    assert found.train.batch_size >= 1
    with pytest.raises(MachineError, match="not one window"):
        fitted(monkeypatch, 0.01, **long)
