"""On a GPU nothing slower runs in silence: a self-test that fails is told, once and in full."""

import importlib.util
import logging
from pathlib import Path
from types import ModuleType

import pytest
import torch

from genodiff.diagnosis.selftest import check_scans
from genodiff.kernels import dispatch
from genodiff.kernels.dispatch import PROVIDERS, select_provider

MACHINE = Path(__file__).parents[2] / "benchmarks" / "gpu" / "machine.py"
pytestmark = [
    pytest.mark.skipif(torch.cuda.is_available(), reason="the self-test works where a GPU is"),
    pytest.mark.filterwarnings("ignore:User provided device_type of 'cuda'"),
]


def forget() -> None:
    for known in (dispatch._find_fault, dispatch._first_available):
        known.cache_clear()


@pytest.fixture
def broken(monkeypatch):
    """A machine that has all that Triton's kernels need, and on which they fail."""
    forget()
    monkeypatch.delenv("GENODIFF_SCAN", raising=False)
    monkeypatch.setattr(dispatch, "_preferred", "auto")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    known = PROVIDERS["triton"]
    fake = dispatch.Provider(known.name, known.about, known.scan, lambda: None, "cuda")
    monkeypatch.setitem(PROVIDERS, "triton", fake)
    yield
    forget()


def test_the_whole_traceback_is_printed_once_and_slower_kernels_are_named(broken, caplog):
    with caplog.at_level(logging.WARNING, "genodiff"):
        for _ in range(3):
            assert select_provider(device="cuda").name == "torch"
    traces = [r for r in caplog.records if r.exc_info]
    assert len(traces) == 1
    assert "in _solve" in caplog.text
    assert "Traceback (most recent call last)" in caplog.text
    told = [r.getMessage() for r in caplog.records if "slower" in r.getMessage()]
    assert len(told) == 1
    assert "'torch'" in told[0]
    assert "'triton': its first run failed" in told[0]


def test_the_doctor_says_so(broken):
    checks, best = check_scans()
    assert best == "torch"
    (found,) = (c for c in checks if c.name == "scan triton")
    assert found.status == "warn"
    assert "its first run failed" in found.detail
    assert "slower kernels run on this GPU" in found.detail
    assert "traceback above" in found.fix


def load_machine() -> ModuleType:
    spec = importlib.util.spec_from_file_location("gpu_machine", MACHINE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_gpu_benchmarks_refuse_to_measure_other_kernels(broken, capsys):
    machine = load_machine()
    assert machine.DEVICE == "cuda"
    with pytest.raises(SystemExit) as refused:
        machine.require_kernels()
    assert refused.value.code == 3
    assert "refused, the Triton kernels do not run here" in capsys.readouterr().err
