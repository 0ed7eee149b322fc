"""A sequence in pieces: the scan's state and the convolution's context are carried over."""

import importlib
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scans import PROVIDERS, Problem
from strict_peers import on_gpu
from torch import Tensor

from genodiff.errors import UsageError
from genodiff.kernels import direction, dispatch, mamba_ssm
from genodiff.kernels.conv import causal_conv1d
from genodiff.kernels.dispatch import select_provider
from genodiff.kernels.scan import SCAN, selective_scan

cuts = st.lists(st.integers(1, 149), max_size=4, unique=True).map(sorted)


def pieces(cuts: list[int], length: int, reverse: bool) -> list[slice]:
    spans = [slice(a, b) for a, b in zip([0, *cuts], [*cuts, length], strict=True)]
    return spans[::-1] if reverse else spans


@pytest.mark.few(2)
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("reverse", [False, True])
@settings(max_examples=12, deadline=None)
@given(cuts)
def test_a_scan_in_pieces_is_the_scan(provider, reverse, cuts):
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
    provider, reverse, cuts, width, generous
):
    x, weight, bias, gy = (torch.randn(s) for s in ((2, 150, 5), (5, width), (5,), (2, 150, 5)))
    x.requires_grad_()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GENODIFF_SCAN", provider)
        whole = causal_conv1d(x, weight, bias, reverse)
        wanted = torch.autograd.grad(whole, x, gy)[0]
        found: list[Tensor] = []
        for piece in pieces(cuts, 150, reverse):
            far = 150 if generous else width - 1
            left, right = (
                slice(max(piece.start - far, 0), piece.start),
                slice(piece.stop, piece.stop + far),
            )
            before = x[:, right if reverse else left]
            found.append(causal_conv1d(x[:, piece], weight, bias, reverse, before=before))
    y = torch.cat(found[::-1] if reverse else found, 1)
    torch.testing.assert_close(y, whole, rtol=0, atol=1e-6)
    torch.testing.assert_close(torch.autograd.grad(y, x, gy)[0], wanted, rtol=1e-5, atol=1e-5)


def test_the_last_state_of_the_native_scan_takes_no_memory_for_a_backward_pass(monkeypatch):
    if select_provider().name != "native":
        pytest.skip("the native scan is not here")
    fail = pytest.fail
    monkeypatch.setattr(direction, "allocate_states", lambda *_: fail("made room for states"))
    inputs = Problem(1, 70, 8, 4, h0=True).inputs
    x = {name: value.float().requires_grad_() for name, value in inputs.items()}
    with torch.no_grad():
        selective_scan(**x, delta_softplus=True, return_state=True)


def test_the_published_scan_says_what_it_misses_and_gives_way_on_a_cpu():
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    assert "CUDA" in (mamba_ssm.find_missing() or "")
    (published,) = (i for i in SCAN.implementations if i.provider == "mamba_ssm")
    assert not published.accepts(*(torch.ones(1, 2, 3) for _ in range(5)), None)


@pytest.fixture
def peers(tmp_path, monkeypatch):
    """A folder whose modules stand in for the published packages, with a GPU that torch sees."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    caches = [mamba_ssm._published, mamba_ssm._published_conv, dispatch._find_fault]
    names = ("mamba_ssm", "causal_conv1d", "selective_scan_cuda", "causal_conv1d_cuda")
    saved = {n: sys.modules.pop(n) for n in list(sys.modules) if n.partition(".")[0] in names}
    for cached in caches:
        cached.cache_clear()
    yield tmp_path
    for cached in caches:
        cached.cache_clear()
    for name in [n for n in sys.modules if n.partition(".")[0] in names]:
        del sys.modules[name]
    sys.modules.update(saved)


def write_peer(folder: Path, interface: str, extension: str | None) -> None:
    """mamba-ssm as it is installed, with its extension or without."""
    inner = folder / "mamba_ssm" / "ops"
    inner.mkdir(parents=True)
    for part in (inner.parent, inner):
        (part / "__init__.py").touch()
    text = (
        f"{interface}\ndef selective_scan_fn(*given):\n    return selective_scan_cuda.fwd(*given)\n"
    )
    (inner / "selective_scan_interface.py").write_text(text)
    if extension is not None:
        (folder / "selective_scan_cuda.py").write_text(extension)


_FIRST = "import selective_scan_cuda"  # releases to 2.3.2; the sources since then:
_LATER = f"try:\n    {_FIRST}\nexcept ImportError:\n    selective_scan_cuda = None"


@pytest.mark.parametrize(
    ("interface", "extension", "said"),
    [
        (_LATER, None, "lacks its CUDA extension selective_scan_cuda"),
        (_FIRST, None, "lacks its CUDA extension selective_scan_cuda"),
        (_FIRST, "raise ImportError('undefined symbol: _ZN3c10')", "undefined symbol: _ZN3c10"),
    ],
)
def test_a_broken_mamba_ssm_is_named_in_one_line_and_never_called(
    peers, interface, extension, said
):
    write_peer(peers, interface, extension)
    with pytest.raises(UsageError, match="mamba_ssm is broken") as caught:
        select_provider("mamba_ssm", "cuda")
    line = str(caught.value)
    assert said in line
    assert "MAMBA_KEEP_CUDA_BUILD=TRUE pip install" in line
    assert "\n" not in line
    assert not mamba_ssm.fits_published_scan(*(on_gpu(torch.ones(1, 2, 3)) for _ in range(5)), None)


def test_a_sound_mamba_ssm_is_called(peers):
    write_peer(peers, _LATER, "def fwd(*given):\n    return len(given)\n")
    assert mamba_ssm.find_missing() is None
    scan, _ = mamba_ssm._published()
    assert scan(1, 2) == 2
    assert mamba_ssm.fits_published_scan(*(on_gpu(torch.ones(1, 2, 3)) for _ in range(5)), None)


def test_a_causal_conv1d_without_its_extension_is_named_once_and_left_out(peers, caplog):
    (peers / "causal_conv1d.py").write_text(
        "def causal_conv1d_fn(*given):\n    raise AttributeError\n"
    )
    x, weight = on_gpu(torch.ones(1, 3, 8)), on_gpu(torch.ones(8, 4))
    for _ in range(2):
        assert not mamba_ssm.fits_published_conv(x, weight, None)
    assert caplog.text.count("causal_conv1d is broken") == 1
    (peers / "causal_conv1d_cuda.py").touch()
    importlib.invalidate_caches()
    mamba_ssm._published_conv.cache_clear()
    assert mamba_ssm.fits_published_conv(x, weight, None)
