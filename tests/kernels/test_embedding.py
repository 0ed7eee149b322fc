"""Rows of a table by token: those of torch, with a gradient whose sums have a fixed order."""

from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from genodiff.alphabet import DNA
from genodiff.backbones.backbone import PRESETS
from genodiff.kernels import linear
from genodiff.kernels.linear import look_up

NETWORKS = ("caduceus-ps-tiny", "dit-470k", "dimamba-470k")


@pytest.fixture
def on_a_gpu(monkeypatch):
    """Tables as if they were on a GPU, and few numbers at a time."""
    monkeypatch.setattr(linear, "_sums_by_atomics", lambda table: True)
    monkeypatch.setattr(linear, "_NUMBERS", 40)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_its_rows_and_gradient_are_those_of_torch(on_a_gpu, dtype):
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, 4, (3, 7), generator=generator)
    table = torch.randn(5, 6, generator=generator, requires_grad=True)
    g = torch.randn(3, 7, 6, generator=generator).to(dtype)
    wanted = F.embedding(tokens, table)
    found = look_up(tokens, table)
    assert torch.equal(found, wanted)
    assert type(found.grad_fn).__name__ == "_RowsBackward"
    (a,), (b,) = (torch.autograd.grad(x.to(dtype), table, g) for x in (found, wanted))
    assert a.dtype == torch.float32
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def test_on_a_cpu_and_without_a_gradient_it_is_torchs_own():
    table = torch.randn(5, 6, requires_grad=True)
    tokens = torch.tensor([[1, 2]])
    assert type(look_up(tokens, table).grad_fn).__name__ == "EmbeddingBackward0"
    with torch.no_grad():
        assert look_up(tokens, table).grad_fn is None


def list_nodes(root: Tensor) -> Iterator[str]:
    """The names of all operations behind a tensor."""
    waiting, seen = [root.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield type(node).__name__
            waiting += [below for below, _ in node.next_functions]


@pytest.mark.parametrize("name", NETWORKS)
def test_no_gradient_of_a_network_is_one_that_a_gpu_adds_by_atomics(name, on_a_gpu):
    network = PRESETS[name].build(DNA.padded_size, DNA.complement)
    tokens = torch.randint(7, 11, (2, 16), generator=torch.Generator().manual_seed(1))
    names = set(list_nodes(network(tokens, torch.zeros(2)).sum()))
    assert "_RowsBackward" in names
    by_atomics = {"EmbeddingBackward0", "IndexSelectBackward0", "IndexAddBackward0", "PutBackward0"}
    assert not names & by_atomics
