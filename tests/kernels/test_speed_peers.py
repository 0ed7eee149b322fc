"""What the speed benchmark compares with computes the same scan: values and gradients."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from scans import differentiate
from torch import Tensor

from genodiff.kernels.naive import naive_scan

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks" / "speed"))
import peers


def check(scan: Callable[..., Tensor], length: int) -> None:
    g = torch.Generator().manual_seed(1)
    u, delta = (torch.randn(2, length, 5, generator=g) for _ in range(2))
    B, C = (torch.randn(2, length, 4, generator=g) for _ in range(2))
    A, D, bias = -torch.arange(1.0, 5).repeat(5, 1), torch.ones(5), torch.full((5,), -1.0)
    given = (u, delta, A, B, C, D, bias)
    wanted = differentiate(lambda *x: naive_scan(*x[:6], None, x[6], True)[0].square(), given)
    found = differentiate(lambda *x: scan(*x).square(), given)
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("length", [2, 7, 64])
@pytest.mark.parametrize("scan", [peers.associative, peers.loop], ids=["associative", "loop"])
def test_a_peer_is_the_naive_scan(scan, length):
    check(scan, length)


@pytest.mark.slow
@pytest.mark.long  # a minute of compiling, of what benchmarks alone run
def test_the_compiled_associative_scan_is_the_naive_scan():
    check(peers.compiled_associative(), 64)
