"""Float32 products: the switch that routes them is exact, put back afterwards, never where it would
round; sums over tokens in pieces.
"""

import pytest
import torch

from genodiff.kernels import gemm
from genodiff.kernels.gemm import plain_matmul, routed_matmul, routing, sum_over_tokens

if not hasattr(torch.backends.mkldnn, "matmul"):
    pytest.skip("this torch has no such switch", allow_module_level=True)


@pytest.fixture(autouse=True)
def fresh_choice():
    routing.cache_clear()
    yield
    routing.cache_clear()


def setting() -> str:
    return str(torch.backends.mkldnn.matmul.fp32_precision)


def test_the_setting_is_put_back_even_after_an_error():
    before = setting()
    with routed_matmul() as routed:
        assert (setting() == "bf16") == routed
        with plain_matmul():
            assert setting() == before
        assert (setting() == "bf16") == routed
    assert setting() == before
    with pytest.raises(KeyError), routed_matmul():
        raise KeyError
    assert setting() == before
    with routed_matmul(enabled=False) as routed:  # nothing is switched where it is not asked for
        assert (routed, setting()) == (False, before)


def test_products_stay_float32_where_they_are_routed():
    generator = torch.Generator().manual_seed(0)
    for rows, inputs, outputs in ((4096, 118, 472), (1000, 236, 40), (777, 8, 236), (33, 64, 16)):
        x, w, g = (
            torch.randn(s, generator=generator)
            for s in ((rows, inputs), (outputs, inputs), (rows, outputs))
        )
        for a, b in ((x, w.t()), (g, w), (g.t(), x)):
            exact = a.double() @ b.double()
            with routed_matmul():
                error = float((a @ b - exact).norm() / exact.norm())
            assert error < 2e-6


def test_a_processor_with_matrix_tiles_is_never_routed(monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)
    assert not routing()[0]
    assert "bfloat16" in routing()[1]


def test_a_processor_that_rounds_is_found_out(monkeypatch):
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    monkeypatch.setattr(gemm, "_is_amd", lambda: True)
    monkeypatch.setattr(gemm, "_error", lambda: 2.9e-3)
    assert not routing()[0]
    assert "3e-03" in routing()[1]
    routing.cache_clear()
    monkeypatch.setattr(gemm, "_is_amd", lambda: False)  # others keep the default
    monkeypatch.setattr(gemm, "_error", lambda: 0.0)
    assert not routing()[0]


def test_the_check_itself_sees_a_product_that_rounds(monkeypatch):
    class Rounding(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            if (
                func in (torch.Tensor.matmul, torch.Tensor.__matmul__)
                and args[0].dtype == torch.float32
            ):
                args = tuple(a.bfloat16().float() for a in args)
            return func(*args, **(kwargs or {}))

    # Products of torch's own, since the routed ones do round on processors with matrix tiles.
    monkeypatch.setattr(gemm, "_ROUTED", None)
    assert gemm._error() < 1e-5
    with Rounding():
        assert gemm._error() > 1e-4


@pytest.mark.parametrize("rows", [1, 3, 1024, 1025, 5000, 40000])
def test_a_sum_over_tokens_is_the_product(rows):
    generator = torch.Generator().manual_seed(rows)
    a, b = torch.randn(rows, 9, generator=generator), torch.randn(rows, 5, generator=generator)
    exact = a.double().t() @ b.double()
    assert (sum_over_tokens(a, b) - exact).norm() <= 2e-6 * exact.norm()
    assert sum_over_tokens(a[:0], b[:0]).eq(0).all()
