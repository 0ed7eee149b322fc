"""The operations recorded by torch.export equal their definitions."""

from typing import Any

import pytest
import torch
from scans import draw
from torch import Tensor

from genodiff.kernels.direction import ScanInputs, is_recorded
from genodiff.kernels.naive import run_naively
from genodiff.kernels.norm import graph_norm, rms_norm
from genodiff.kernels.scan import graph_scan


@pytest.mark.few(5)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 2, 7, 33])
@pytest.mark.parametrize("full", [False, True])
def test_the_scan_is_the_definition(length, reverse, full):
    batch, e, n = 2, 3, 4
    inputs: list[Any] = [draw(batch, length, e, seed=i) for i in range(2)]
    inputs += [-draw(e, n).abs(), draw(batch, length, n, seed=2), draw(batch, length, n, seed=3)]
    inputs += [draw(e), draw(e, seed=5), draw(batch, e, n, seed=6)] if full else [None] * 3
    given = (ScanInputs(*inputs), full, reverse)
    for mine, theirs in zip(graph_scan(*given), run_naively(*given), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_the_norm_is_the_definition():
    x, weight = draw(2, 3, 5), draw(5)
    torch.testing.assert_close(graph_norm(x, weight, 1e-5), rms_norm(x, weight, 1e-5))


def test_recording_is_seen(monkeypatch):
    assert not is_recorded()
    seen = []

    class Asks(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            seen.append(is_recorded())
            return x + 1

    torch.export.export(Asks(), (torch.ones(1),))
    assert seen[-1]
    assert not is_recorded()
