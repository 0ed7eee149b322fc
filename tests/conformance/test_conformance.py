"""The full golden set of the reference implementations, by its own comparer and tolerances."""

from types import SimpleNamespace

import adapter
import golden
import pytest
from folders import SHARED

CASES = SHARED / "conformance" / "cases"
# Share of a case's tensors that must be there; of "diffusion_", losses in mixed precision are not.
COVERAGE = {
    "noise_schedules_": 1.0, "diffusion_": 0.8, "sample_": 1.0, "sample2_": 1.0, "mlm_masking": 1.0,
    "module_": 0.9, "op_": 0.9, "caduceus_": 0.9, "mdlm_": 0.9, "ddg_classifier": 0.9,
    "ddg_dimamba": 0.9, "train_": 0.9, "timestep_embedding": 0.9, "decoder_sequence": 0.9,
}  # fmt: skip
PATHS = sorted(path for prefix in COVERAGE for path in CASES.glob(f"{prefix}*.safetensors"))
PATHS = [path for path in PATHS if "_cls_" not in path.name]  # tests/hf has the classifier

pytestmark = pytest.mark.skipif(not PATHS, reason="no shared folder here (set GENODIFF_SHARED)")


@pytest.fixture(scope="module")
def comparer():
    return golden.load_comparer(SHARED)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_golden_numbers_are_reproduced(path, comparer):
    coverage = next(share for prefix, share in COVERAGE.items() if path.name.startswith(prefix))
    assert comparer.compare(comparer.load_case(str(path)), adapter.run, coverage=coverage)


def test_a_residual_stored_in_float32_is_felt_in_a_float64_run(comparer):
    """The unfused reference stores it so when asked to; the fused one does not."""
    case = comparer.load_case(str(CASES / "caduceus_ph_tiny_unfused.json"))
    wanted = {"out/logits_f64": case.expected["out/logits_f64"].shape}

    def off(**changes: object) -> float:
        meta = case.meta | {"config": case.meta["config"] | changes}
        given = {"params": case.params, "inputs": case.inputs, "wanted": wanted}
        found = adapter.run(SimpleNamespace(name="", meta=meta, **given))["out/logits_f64"]
        return float((found - case.expected["out/logits_f64"]).abs().max())

    assert 1e-9 < off(residual_in_fp32=True) < 1e-5
    assert off(residual_in_fp32=True, fused_add_norm=True) < 1e-9
