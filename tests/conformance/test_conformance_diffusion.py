"""The golden cases of the diffusion: every tensor that the adapter returns is inside its tolerance."""

import importlib.util
from pathlib import Path
from types import ModuleType, SimpleNamespace

import adapter_diffusion
import pytest
from conftest import SHARED

CASES = sorted((SHARED / "conformance" / "cases").glob("*.safetensors"))
OURS = [
    path
    for path in CASES
    if path.stem.startswith(("noise_", "diffusion_"))
    or path.stem.startswith(("sample_", "sample2_", "mlm_"))
]
SHARE = {
    "noise": 1.0,
    "process": 0.8,
    "sampling": 1.0,
    "bert": 1.0,
}  # of a case's tensors; the rest: losses in mixed precision

pytestmark = pytest.mark.skipif(not CASES, reason="no shared folder here (set GENODIFF_SHARED)")


@pytest.fixture(scope="module")
def comparer() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "golden_compare", SHARED / "conformance" / "compare.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blind(case: SimpleNamespace) -> SimpleNamespace:
    return SimpleNamespace(
        **vars(case), wanted={name: tuple(value.shape) for name, value in case.expected.items()}
    )


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_golden_diffusion_tensors_are_reproduced(path: Path, comparer: ModuleType) -> None:
    case = comparer.load_case(str(path))
    kind = adapter_diffusion._kind(blind(case))
    assert comparer.compare(case, adapter_diffusion.run, coverage=SHARE[kind])


def test_no_other_case_is_claimed(comparer: ModuleType) -> None:
    for path in set(CASES) - set(OURS):
        assert not adapter_diffusion.handles(blind(comparer.load_case(str(path)))), path.stem
