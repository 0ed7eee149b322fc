"""RMSNorm in C and in torch against its formula in float64."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scans import PROVIDERS, differentiate
from torch import Tensor

from genodiff.kernels.norm import graph_norm, rms_norm


@pytest.mark.parametrize("provider", PROVIDERS)
@settings(max_examples=25, deadline=None)
@given(st.integers(1, 600), st.integers(1, 40))
def test_outputs_and_gradients_are_those_of_the_formula(provider, rows, width):
    g = torch.Generator().manual_seed(rows)
    x, w, gy = (torch.randn(s, generator=g) for s in ((1, rows, width), (width,), (1, rows, width)))

    def formula(x: Tensor, w: Tensor) -> Tensor:
        return w * x / torch.sqrt(x.square().mean(-1, keepdim=True) + 1e-3)

    truth = differentiate(formula, (x, w), gy, torch.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GENODIFF_SCAN", provider)
        found = differentiate(partial(rms_norm, eps=1e-3), (x, w), gy)
    recorded = graph_norm(x.double(), w.double(), 1e-3)
    torch.testing.assert_close(recorded, truth[0], rtol=1e-12, atol=1e-12)
    for a, b in zip(found, truth, strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-4, atol=1e-5 * rows**0.5)
