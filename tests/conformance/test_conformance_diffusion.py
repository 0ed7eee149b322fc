"""The golden cases of the diffusion: every tensor that the adapter returns is inside its tolerance."""

import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace

import adapter_diffusion
import pytest
from conftest import SHARED

CASES = sorted((SHARED / "conformance" / "cases").glob("*.safetensors"))
SHARE = {"noise": 1.0, "process": 0.4, "sampling": 1.0}  # of a case's tensors; the rest is D3PM, SEDD, analytic


@pytest.fixture(scope="module")
def comparer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_compare", SHARED / "conformance" / "compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blind(case: SimpleNamespace) -> SimpleNamespace:
    return SimpleNamespace(**vars(case), wanted={name: tuple(value.shape) for name, value in case.expected.items()})


@pytest.mark.skipif(not CASES, reason="no shared folder here (set GENODIFF_SHARED)")
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_golden_tensors_are_reproduced(path: Path, comparer: ModuleType) -> None:
    if not path.stem.startswith(("noise_", "diffusion_", "sample")) or "analytic" in path.stem or "sedd" in path.stem:
        assert not adapter_diffusion.handles(blind(comparer.load_case(str(path))))
        return
    case = comparer.load_case(str(path))
    kind = adapter_diffusion._kind(blind(case))
    assert comparer.compare(case, adapter_diffusion.run, coverage=SHARE[kind])
