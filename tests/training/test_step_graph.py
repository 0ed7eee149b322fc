"""Training whose micro-batches are played back as graphs; recordings stand for CUDA's on a CPU. A
step waits for the device once, at its end: "meta" has no values, and whoever asks for one fails.
"""

import logging
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from recordings import Breaking, Played, Rounding, Stale, Unrecordable
from test_step import batch
from tiny_training import TINY, build_parts, read_rows, run_tiny, tiny
from torch.utils._python_dispatch import TorchDispatchMode

from genodiff.runs.resolve import resolve_config
from genodiff.training import run
from genodiff.training.module import Pretraining
from genodiff.training.optimizer import WeightAverage


def read_run(folder: Path) -> tuple[bytes, list[str]]:
    """The weights, and the loss of each step with its gradient's norm."""
    kept = ("loss_hex", "grad_norm", "valid_bits")
    losses = [" ".join(row[name] for name in kept) for row in read_rows(folder)]
    return (folder / "model.safetensors").read_bytes(), losses


HOW: dict[str, Any] = {"steps": 9, "batch_size": 4, "accumulate": 2, "validate_every": 5}


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", pytest.param("bf16", marks=pytest.mark.slow)])
def test_a_run_gives_the_same_bits_with_graphs_and_without(
    tmp_path, monkeypatch, caplog, precision
):
    run_tiny(tmp_path / "plain", **HOW, precision=precision)
    plain = read_run(tmp_path / "plain")
    caplog.set_level(logging.INFO, "genodiff")
    for record in (Played, Unrecordable, Breaking, Stale, Rounding):
        caplog.clear()
        monkeypatch.setattr(run, "find_recorder", lambda device, record=record: record)
        run_tiny(tmp_path / record.__name__, **HOW, precision=precision)
        assert read_run(tmp_path / record.__name__) == plain, record
        said = [r for r in caplog.records if "the training step is" in r.getMessage()]
        assert len(said) == 1, record
        assert said[0].levelname == ("INFO" if record is Played else "WARNING")


def module_of(record: Any, **changes: Any) -> Pretraining:
    config = tiny(**changes)
    return Pretraining(*build_parts(config), config, 0.1, record=record)


def test_padded_batches_are_run_as_they_are_and_gradients_add_up():
    plain, graphed = (module_of(record, accumulate=2) for record in (None, Played))
    for step in range(6):
        for module in (plain, graphed):
            module.begin_step(step)
            module.zero_grad()
            for part in (0, 1):
                given = batch(2, 64, seed=2 * step + part, pad=3 if part and step % 2 else 0)
                given = given._replace(u_shared=0.1 * step)
                module.backward(module.training_step(given, part) / 2)
        for a, b in zip(plain.parameters(), graphed.parameters(), strict=True):
            assert (a.grad is None) == (b.grad is None)
            assert a.grad is None or torch.equal(a.grad, b.grad)  # type: ignore[arg-type]
        assert torch.equal(plain.totals, graphed.totals)
    captured = graphed._graph.captured
    assert captured.played == 3  # of nine without padding, six are run as they are or compared
    assert not captured.fault


def test_autocast_keeps_no_copies_of_weights_which_a_graph_would_read_again():
    module, seen = module_of(None), []

    def note(*_: Any) -> None:
        seen.append((torch.is_autocast_enabled("cpu"), torch.is_autocast_cache_enabled()))

    module.backbone.register_forward_pre_hook(note)
    with torch.autocast("cpu", torch.bfloat16):
        module.training_step(batch(2, 64), 0)
    assert seen == [(True, False)]


def test_ranks_memories_and_dropout_leave_no_graph():
    config = tiny()
    given = *build_parts(config), config, 0.1
    assert Pretraining(*given, record=Played)._graph is not None
    assert Pretraining(*given, 2, record=Played)._graph is None
    remember = lambda denoiser, batch: denoiser  # noqa: E731
    assert Pretraining(*given, remember=remember, record=Played)._graph is None
    asked = TINY | {"preset": "dit-tiny", "dropout": 0.1}
    config = resolve_config({k: v for k, v in asked.items() if k != "d_state"})
    assert Pretraining(*build_parts(config), config, 0.1, record=Played)._graph is None


META = torch.device("meta")


class Copies(TorchDispatchMode):
    """Counts copies from the host to the device."""

    def __init__(self) -> None:
        super().__init__()
        self.n = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func is torch.ops.aten._to_copy.default:
            self.n += args[0].device != META and out.device == META
        return out


@pytest.mark.few(2)
@pytest.mark.parametrize(("pad", "name"), [(0, "mdlm"), (3, "mdlm"), (0, "uniform")])
def test_a_step_reads_the_device_once(monkeypatch, pad, name):
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # "meta" has none
    config = tiny(objective=name)
    backbone, objective = build_parts(config)
    average = WeightAverage(backbone, 0.9)
    module = Pretraining(backbone, objective, config, 0.1).to(META)
    average.module.to(META)
    given = module.transfer_batch_to_device(batch(4, 64, pad=pad), META, 0)
    assert given.x0.device == META
    module.begin_step(0)
    module.training_step(given, 0).backward()  # tables of the alphabet are copied once, here
    with Copies() as copies:
        module.training_step(given, 1).backward()
    assert copies.n == (1 if pad else 0)  # the lengths, where windows are padded

    reads = []

    def tolist(tensor: torch.Tensor) -> list[float]:
        reads.append(tensor)
        return [1.0] * len(tensor)

    monkeypatch.setattr(torch.Tensor, "tolist", tolist)
    same = SimpleNamespace(reduce=lambda tensor, reduce_op: tensor)
    monkeypatch.setattr(Pretraining, "trainer", SimpleNamespace(strategy=same))
    module.configure_gradient_clipping()
    average.update(module.backbone)
    assert [x.device for x in reads] == [META]
    assert not module.skip
    assert module.loss > 0
