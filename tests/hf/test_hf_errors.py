"""What transformers' users meet where something is wrong: OSError and ValueError, one line each."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hf_folders import write_with_remote_code
from transformers import AutoModelForMaskedLM, AutoModelForSequenceClassification

from genodiff.hf import Caduceus, CaduceusConfig, CaduceusForMaskedLM
from tests.hub.published_folders import CONFIG, change_state

SCRAMBLED = {"7": 8, "8": 7, "9": 10, "10": 9}


@pytest.fixture
def folder(tmp_path):
    write_with_remote_code(tmp_path / "hub")
    return tmp_path / "hub"


def change_config(folder: Path, **changes: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def fault_of(folder: Path | str, kind: type[Exception], **options: Any) -> str:
    """The message of `from_pretrained`, which is one line of ours."""
    with pytest.raises(kind) as found:
        CaduceusForMaskedLM.from_pretrained(folder, **options)
    assert type(found.value) is kind
    message = str(found.value)
    assert "\n" not in message
    assert str(folder) in message
    return message


def test_a_missing_file_is_named(folder):
    (folder / "model.safetensors").rename(folder.parent / "weights")
    assert "holds no weights" in fault_of(folder, OSError)
    (folder / "config.json").unlink()
    assert "config.json: is missing (not found)" in fault_of(folder, OSError)
    # Without a config transformers knows no class to ask: its own words.
    with pytest.raises((OSError, ValueError), match=r"config\.json"):
        AutoModelForMaskedLM.from_pretrained(folder)
    with pytest.raises(OSError, match="is a file; give the folder"):
        CaduceusForMaskedLM.from_pretrained(folder.parent / "weights")


def drop_norm(folder: Path) -> None:
    name = "caduceus.backbone.norm_f.weight"
    change_state(folder, lambda state: {n: x for n, x in state.items() if n != name})


FAULTS: dict[str, tuple[Callable[[Path], Any], type[Exception], str]] = {
    "another type": (
        lambda f: change_config(f, model_type="mamba"), ValueError,
        "model_type is 'mamba', not 'caduceus'",
    ),
    "a wrong number": (
        lambda f: change_config(f, d_model=-1), ValueError,
        "d_model is -1: must be a whole number",
    ),
    "another form": (
        lambda f: change_config(f, fused_add_norm=False), ValueError,
        "set fused_add_norm to true",
    ),
    "another size": (lambda f: change_config(f, d_model=16), OSError, "do not fit each other"),
    "no weights": (
        lambda f: (f / "model.safetensors").write_bytes(b"version https://git-lfs\n"), OSError,
        "model.safetensors",
    ),
    "a tensor is missing": (drop_norm, OSError, "lacks 'caduceus.backbone.norm_f.weight'"),
    "another complement": (
        lambda f: change_config(f, complement_map={**CONFIG["complement_map"], **SCRAMBLED}),
        OSError, "complement_map' differs",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_config_is_a_value_error_and_one_of_the_weights_an_os_error(folder, fault):
    """Faults of files are listed in tests/hub/test_wrong_files.py; here is their type."""
    change, kind, said = FAULTS[fault]
    change(folder)
    assert said in fault_of(folder, kind)


def test_options_that_are_not_read(folder):
    with pytest.raises(ValueError, match="variant='fp16'"):
        CaduceusForMaskedLM.from_pretrained(folder, variant="fp16")
    with pytest.raises(NotImplementedError, match="pooling_strategy 'median'; give mean, max"):
        AutoModelForSequenceClassification.from_pretrained(folder, pooling_strategy="median")


def test_configs_that_no_network_is_built_of():
    usual = {"d_model": 16, "n_layer": 1, "vocab_size": 12}
    with pytest.raises(ValueError, match="complement_map is missing"):
        Caduceus(CaduceusConfig(**usual, rcps=True))
    with pytest.raises(ValueError, match="'Mamba2' is not known here"):
        Caduceus(CaduceusConfig(**usual, ssm_cfg={"layer": "Mamba2"}))


def test_a_head_of_somebody_else_is_reported_and_not_used(folder):
    more = {"decoder.layers.0.weight": torch.ones(2, 2)}
    change_state(folder, lambda state: state | more)
    _, told = AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True)
    assert told["unexpected_keys"] == {"decoder.layers.0.weight"}
    assert not told["missing_keys"]
