"""`m.network` under torch.export and torch.jit.trace: the same logits, for any batch and length."""

import io
import warnings

import pytest
import torch
from torch.export import Dim, export

import genodiff
from tests.api.test_model import NETWORKS, model, runs

__all__ = ["model", "runs"]  # the fixtures

IDS = torch.tensor([[7, 8, 9, 3, 10, 11, 7], [10, 3, 9, 8, 7, 7, 8]])
OTHERS = torch.tensor([[7, 8, 9, 3, 10, 11, 7, 7, 9, 3, 8], [10] * 11, [8, 3] * 5 + [9]])


@pytest.mark.slow
def test_an_exported_network_takes_any_batch_and_length(model):
    shapes = {"ids": {0: Dim("batch"), 1: Dim("length")}}
    with torch.no_grad():
        program = export(model.network, (IDS,), dynamic_shapes=shapes)
        file = io.BytesIO()
        torch.export.save(program, file)
        file.seek(0)
        again = torch.export.load(file).module()
        for ids in (IDS, OTHERS, OTHERS[:1, :3]):
            expected = model.network(ids)
            torch.testing.assert_close(program.module()(ids), expected, atol=1e-4, rtol=1e-4)
            torch.testing.assert_close(again(ids), expected, atol=1e-4, rtol=1e-4)
    assert float(expected.std()) > 0.01


@pytest.mark.slow
def test_padded_rows_and_hidden_states_are_exported_too(runs):
    model = genodiff.load(runs["ps"], device="cpu")
    shapes = {"ids": {0: Dim("batch"), 1: Dim("length")}, "lengths": {0: Dim("batch")}}
    lengths = torch.tensor([7, 4])
    given = (IDS, lengths)
    with torch.no_grad():
        program = export(
            model.network, given, {"hidden_states": True},
            dynamic_shapes=shapes | {"hidden_states": None},
        ).module()  # fmt: skip
        lengths = torch.tensor([11, 2, 5])
        logits, states = program(OTHERS, lengths, hidden_states=True)
        expected, layers = model.network(OTHERS, lengths, hidden_states=True)
    for row, n in enumerate(lengths.tolist()):
        torch.testing.assert_close(logits[row, :n], expected[row, :n], atol=1e-4, rtol=1e-4)
        for mine, theirs in zip(states, layers, strict=True):
            torch.testing.assert_close(mine[row, :n], theirs[row, :n], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", list(NETWORKS))
def test_a_traced_network_gives_the_same_logits(runs, name):
    network = genodiff.load(runs[name], device="cpu").network
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of the tracer: shapes become numbers
        traced = torch.jit.trace(network, (IDS,), check_trace=False)
        torch.testing.assert_close(traced(IDS), network(IDS), atol=1e-4, rtol=1e-4)
