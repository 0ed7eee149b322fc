"""Blocks compiled by torch: the numbers and names of those that are not."""

import copy
import logging
from typing import Any

import pytest
import torch
from tiny_training import TINY
from torch import Tensor

from genodiff.backbones.backbone import PRESETS
from genodiff.runs.resolve import resolve_config
from genodiff.training import run, trainer
from genodiff.training.run import train
from genodiff.training.trainer import compile_blocks, find_obstacle

# Dynamo asks each tensor whether it has a gradient.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")


def build(**changes: Any) -> Any:
    settings = PRESETS["dit-470k"].model_copy(
        update={"n_layer": 2, "d_model": 32, "n_head": 2, "d_cond": 8, "norm": "layer"} | changes
    )
    network = settings.build(16, seed=1)
    with torch.no_grad():  # gates and head begin at zero
        for parameter in network.parameters():
            parameter.add_(torch.randn(parameter.shape) / 20)
    return network


def solve(network: Any, tokens: Tensor, lengths: Tensor | None) -> list[Tensor]:
    """The logits of real positions, and all gradients."""
    logits = network(tokens, None, lengths)
    seen = logits if lengths is None else logits[:, : int(lengths.min())]
    found = torch.autograd.grad(seen.square().sum(), list(network.parameters()))
    return [seen.detach(), *found]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "padded"),
    [
        ("aot_eager", True),
        pytest.param("inductor", True, marks=pytest.mark.slow),
        pytest.param("inductor", False, marks=[pytest.mark.slow, pytest.mark.long]),
    ],
)
def test_compiled_blocks_give_the_numbers_of_those_that_are_not(backend, padded):
    torch.manual_seed(0)
    plain = build()
    fused = copy.deepcopy(plain)
    compile_blocks(fused, backend)
    assert list(fused.state_dict()) == list(plain.state_dict())
    tokens = torch.randint(0, 16, (3, 9))
    lengths = torch.tensor([9, 5, 7]) if padded else None
    for a, b in zip(*(solve(x, tokens, lengths) for x in (fused, plain)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    one = torch.randint(0, 16, (1, 1))
    torch.testing.assert_close(fused(one), plain(one), rtol=1e-4, atol=1e-5)


def test_where_blocks_are_not_compiled_the_reason_is_said(monkeypatch):
    monkeypatch.setattr(trainer, "find_spec", lambda name: name)
    network = build()
    assert find_obstacle(network, "cuda:0") == ""
    assert "for a GPU" in find_obstacle(network, "cpu")
    assert "LayerNorm" in find_obstacle(build(norm="rms"), "cuda")
    assert "LayerNorm" in find_obstacle(PRESETS["caduceus-ph-tiny"].build(16, None), "cuda")
    monkeypatch.delattr("torch._inductor.config.deterministic")
    assert "timing" in find_obstacle(network, "cuda")
    monkeypatch.setattr(trainer, "find_spec", lambda name: None)
    assert find_obstacle(network, "cuda") == "triton is not installed"


@pytest.mark.slow
def test_a_run_says_what_its_blocks_are_and_a_run_that_is_compiled_trains(
    tmp_path, monkeypatch, caplog
):
    caplog.set_level(logging.INFO, "genodiff")
    how = {k: v for k, v in TINY.items() if k != "d_state"}
    how |= {"preset": "dit-470k", "n_head": 2, "norm": "layer", "compile": "auto"}
    train(resolve_config(how), tmp_path / "plain", argv=["test"])
    assert "blocks are as they are: it is for a GPU" in caplog.text
    made = []

    def by_eager(network: Any) -> None:
        made.append(network)
        compile_blocks(network, "aot_eager")

    monkeypatch.setattr(run, "find_obstacle", lambda *_: "")
    monkeypatch.setattr(run, "compile_blocks", by_eager)
    train(resolve_config(how), tmp_path / "compiled", argv=["test"])
    assert len(made) == 1
    assert "blocks are compiled" in caplog.text
