"""A sequence in pieces is the sequence: the scan's state and the convolution's context carried
over, in both directions.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scans import PROVIDERS, Problem
from torch import Tensor

from genodiff.kernels import mamba_ssm
from genodiff.kernels.conv import causal_conv1d
from genodiff.kernels.dispatch import select_provider
from genodiff.kernels.naive import naive_scan
from genodiff.kernels.native import scan as native_scan
from genodiff.kernels.scan import SCAN, selective_scan

cuts = st.lists(st.integers(1, 149), max_size=4, unique=True).map(sorted)


def pieces(cuts: list[int], length: int, reverse: bool) -> list[slice]:
    spans = [slice(a, b) for a, b in zip([0, *cuts], [*cuts, length], strict=True)]
    return spans[::-1] if reverse else spans


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("reverse", [False, True])
@settings(max_examples=12, deadline=None)
@given(cuts)
def test_a_scan_in_pieces_is_the_scan(provider: str, reverse: bool, cuts: list[int]) -> None:
    p = Problem(2, 150, 20, 16, seed=len(cuts), z=True, h0=True, reverse=reverse)
    truth = p.solve("naive")
    x = {name: value.detach().float() for name, value in p.inputs.items()}
    h, found = x.pop("h0"), torch.full((2, 150, 20), float("nan"))
    for piece in pieces(cuts, 150, reverse):
        here = {
            name: value[:, piece] if name in ("u", "delta", "B", "C", "z") else value
            for name, value in x.items()
        }
        found[:, piece], h = selective_scan(
            **here, delta_softplus=True, reverse=reverse, h0=h, return_state=True, provider=provider
        )
    assert float((found.double() - truth["y"]).norm() / truth["y"].norm()) < 1e-6
    assert float((h.double() - truth["state"]).norm() / truth["state"].norm()) < 1e-6


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("reverse", [False, True])
@settings(max_examples=12, deadline=None)
@given(cuts, st.integers(1, 6), st.booleans())
def test_a_convolution_in_pieces_is_the_convolution_and_so_are_its_gradients(
    provider: str, reverse: bool, cuts: list[int], width: int, generous: bool
) -> None:
    x, weight, bias, gy = (torch.randn(s) for s in ((2, 150, 5), (5, width), (5,), (2, 150, 5)))
    x.requires_grad_()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GENODIFF_SCAN", provider)
        whole = causal_conv1d(x, weight, bias, reverse)
        wanted = torch.autograd.grad(whole, x, gy)[0]
        found: list[Tensor] = []
        for piece in pieces(cuts, 150, reverse):
            far = 150 if generous else width - 1
            before = (
                x[:, piece.stop : piece.stop + far]
                if reverse
                else x[:, max(piece.start - far, 0) : piece.start]
            )
            found.append(causal_conv1d(x[:, piece], weight, bias, reverse, before=before))
    y = torch.cat(found[::-1] if reverse else found, 1)
    torch.testing.assert_close(y, whole, rtol=0, atol=1e-6)
    torch.testing.assert_close(torch.autograd.grad(y, x, gy)[0], wanted, rtol=1e-5, atol=1e-5)


def test_the_last_state_of_the_native_scan_takes_no_memory_for_a_backward_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if select_provider().name != "native":
        pytest.skip("the native scan is not here")
    monkeypatch.setattr(
        native_scan, "allocate_states", lambda *_: pytest.fail("made room for states")
    )
    x = {
        name: value.float().requires_grad_()
        for name, value in Problem(1, 70, 8, 4, h0=True).inputs.items()
    }
    with torch.no_grad():
        selective_scan(**x, delta_softplus=True, return_state=True)


@pytest.mark.parametrize("reverse", [False, True])
def test_the_published_scan_is_called_with_its_own_layout(reverse: bool) -> None:
    def published(u, delta, A, B, C, D, z, delta_bias, delta_softplus, return_last_state):  # type: ignore[no-untyped-def]
        assert return_last_state
        turned = [x.transpose(1, 2) for x in (u, delta, B, C, z)]
        y, state = naive_scan(
            *turned[:2], A, *turned[2:4], D, turned[4], delta_bias, delta_softplus
        )
        return y.transpose(1, 2), state

    p = Problem(2, 30, 5, 3, z=True, reverse=reverse)
    names = ("u", "delta", "A", "B", "C", "D", "z", "delta_bias")
    y, state = mamba_ssm.call_with_layout(
        published, *(p.inputs[name] for name in names), True, reverse
    )
    truth = p.solve("naive")
    torch.testing.assert_close(y, truth["y"], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(state, truth["state"], rtol=1e-12, atol=1e-12)


def test_the_published_scan_says_what_it_misses_and_gives_way_on_a_cpu() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    assert "CUDA" in (mamba_ssm.find_missing() or "")
    p = Problem(2, 30, 5, 3)
    x = {name: value.detach().float() for name, value in p.inputs.items()}
    inputs = [x.get(name) for name in ("u", "delta", "A", "B", "C", "D", "z", "delta_bias", "h0")]
    (published,) = (i for i in SCAN.implementations if i.provider == "mamba_ssm")
    assert not published.accepts(*inputs)
