"""The full golden set of the reference implementations, by its own comparer and tolerances."""

import json
import subprocess
import sys
from types import SimpleNamespace

import adapter
import adapter_diffusion
import golden
import pytest
from folders import ROOT, SHARED

CASES = SHARED / "conformance" / "cases"
# Share of a case's tensors that must be there; of "diffusion_", losses in mixed precision are not.
COVERAGE = {
    "noise_schedules_": 1.0, "diffusion_": 0.8, "sample_": 1.0, "sample2_": 1.0, "mlm_masking": 1.0,
    "module_": 0.9, "op_": 0.9, "caduceus_": 0.9, "mdlm_": 0.9, "ddg_classifier": 0.9,
    "ddg_dimamba": 0.9, "train_": 0.9, "timestep_embedding": 0.9, "decoder_sequence": 0.9,
}  # fmt: skip
DIFFUSION = ("noise_", "diffusion_", "sample_", "sample2_", "mlm_")
PATHS = sorted(path for prefix in COVERAGE for path in CASES.glob(f"{prefix}*.safetensors"))

pytestmark = pytest.mark.skipif(not PATHS, reason="no shared folder here (set GENODIFF_SHARED)")


@pytest.fixture(scope="module")
def comparer():
    return golden.load_comparer(SHARED)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_golden_numbers_are_reproduced(path, comparer):
    coverage = next(share for prefix, share in COVERAGE.items() if path.name.startswith(prefix))
    assert comparer.compare(comparer.load_case(str(path)), adapter.run, coverage=coverage)


def test_a_case_is_recognised_by_what_it_holds_and_not_by_its_name(comparer):
    for path in PATHS:
        if path.stem in (
            "module_mamba", "op_scan_grouped", "caduceus_ps_tiny_3layer", "noise_schedules_f64",
            "mdlm_dit_len1", "mdlm_dimamba_notemb",
        ):  # fmt: skip
            case = comparer.load_case(str(path))
            case.name = "zzz"
            assert comparer.compare(case, adapter.run, coverage=0.9)


def test_a_residual_stored_in_float32_is_felt_in_a_float64_run(comparer):
    """The unfused reference stores it so when asked to; the fused one does not."""
    case = comparer.load_case(str(CASES / "caduceus_ph_tiny_unfused.json"))
    wanted = {"out/logits_f64": case.expected["out/logits_f64"].shape}

    def logits(**changes: object) -> object:
        meta = case.meta | {"config": case.meta["config"] | changes}
        return adapter.run(
            SimpleNamespace(
                name="", meta=meta, params=case.params, inputs=case.inputs, wanted=wanted
            )
        )["out/logits_f64"]

    error = float((logits(residual_in_fp32=True) - case.expected["out/logits_f64"]).abs().max())  # type: ignore[operator]
    assert 1e-9 < error < 1e-5
    assert (
        float(
            (logits(residual_in_fp32=True, fused_add_norm=True) - case.expected["out/logits_f64"])
            .abs()
            .max()
        )
        < 1e-9
    )  # type: ignore[operator]


def test_the_comparers_command_line_finds_the_adapter_without_pytest():
    command = [sys.executable, str(SHARED / "conformance" / "compare.py"), "--fn",
               "tests.conformance.adapter:run", "--coverage", "0.9"]  # fmt: skip
    done = subprocess.run(
        [*command, str(CASES / "caduceus_ps_tiny_len3.json")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1/1 cases pass" in done.stdout


def test_every_public_case_of_the_issue_is_in_the_index():
    index = json.dumps(json.loads((CASES / "INDEX.json").read_text()))
    assert all(path.stem in index for path in PATHS)


def test_the_adapter_of_the_diffusion_claims_no_other_case(comparer):
    for path in CASES.glob("*.safetensors"):
        case = comparer.load_case(str(path))
        case.wanted = {name: tuple(value.shape) for name, value in case.expected.items()}
        assert adapter_diffusion.handles(case) == path.stem.startswith(DIFFUSION), path.stem
