"""The linear layer in C against float64: outputs and all gradients, for any shape."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from scans import differentiate, needs_library
from torch import Tensor

from genodiff.kernels import library
from genodiff.kernels.linear import linear

pytestmark = needs_library
SIZES = [1, 2, 7, 8, 15, 16, 17, 33, 40, 129]


@pytest.fixture(autouse=True)
def in_c(monkeypatch):
    monkeypatch.setenv("GENODIFF_SCAN", "native")


def layer(rows: int, inputs: int, outputs: int, has_bias: bool) -> tuple[list[Tensor], Tensor]:
    """x, weight and perhaps bias; what flows back."""
    g = torch.Generator().manual_seed(rows + inputs)
    x, weight, bias, gy = (
        torch.randn(s, generator=g)
        for s in ((rows, inputs), (outputs, inputs), (outputs,), (rows, outputs))
    )
    return [x, weight, *([bias] if has_bias else [])], gy


@settings(max_examples=30)
@given(st.sampled_from([1, 3, 8, 63, 64, 65, 200, 257]), st.sampled_from(SIZES),
       st.sampled_from(SIZES), st.booleans(), st.booleans())  # fmt: skip
def test_outputs_and_gradients(rows, inputs, outputs, has_bias, small_tasks):
    given_, gy = layer(rows, inputs, outputs, has_bias)
    with pytest.MonkeyPatch.context() as patch:
        if small_tasks:
            patch.setattr(library, "PIECE", 37)
            patch.setattr(library, "SUM_PIECE", 70)
        found = differentiate(linear, given_, gy)
    for got, exact in zip(found, differentiate(F.linear, given_, gy, torch.float64), strict=True):
        assert (got.double() - exact).norm() <= 2e-6 * (1 + exact.norm())
