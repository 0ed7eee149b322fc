"""The operations recorded by torch.export equal their definitions."""

from typing import Any

import pytest
import torch
from scans import draw
from torch import Tensor

from genodiff.kernels.conv import causal_conv1d
from genodiff.kernels.direction import is_recorded
from genodiff.kernels.graph import graph_conv, graph_norm, graph_scan
from genodiff.kernels.naive import naive_scan
from genodiff.kernels.norm import rms_norm


@pytest.mark.few(5)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 2, 7, 33])
@pytest.mark.parametrize("full", [False, True])
def test_the_scan_is_the_definition(length, reverse, full):
    batch, e, n = 2, 3, 4
    inputs: list[Any] = [draw(batch, length, e, seed=i) for i in range(2)]
    inputs += [-draw(e, n).abs(), draw(batch, length, n, seed=2), draw(batch, length, n, seed=3)]
    inputs += [draw(e), draw(batch, length, e, seed=4), draw(e, seed=5)] if full else [None] * 3
    start = draw(batch, e, n, seed=6) if full else None
    found = graph_scan(*inputs, full, reverse, start)
    for mine, theirs in zip(found, naive_scan(*inputs, full, reverse, start), strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("activation", ["silu", None])
def test_convolution_and_norm_are_the_definitions(reverse, activation):
    for length in (1, 3, 12):
        x, weight, bias = draw(2, length, 5), draw(5, 4), draw(5)
        for shift in (bias, None):
            torch.testing.assert_close(
                graph_conv(x, weight, shift, reverse, activation),
                causal_conv1d(x, weight, shift, reverse, activation),
            )
        torch.testing.assert_close(graph_norm(x, bias, 1e-5), rms_norm(x, bias, 1e-5))


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
