"""What transformers' users meet where something is wrong: OSError and ValueError, one line each."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hf_folders import write_with_remote_code
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForMaskedLM, AutoModelForSequenceClassification

from genodiff.hf import Caduceus, CaduceusConfig, CaduceusForMaskedLM
from tests.hub.published_folders import CONFIG

WORDS = "caduceus.backbone.embeddings.word_embeddings"


@pytest.fixture
def folder(tmp_path):
    write_with_remote_code(tmp_path / "hub")
    return tmp_path / "hub"


def change_config(folder: Path, **changes: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def change_weights(folder: Path, drop: str | None = None, **changes: torch.Tensor) -> None:
    file = folder / "model.safetensors"
    state = load_file(file) | changes
    if drop is not None:
        del state[drop]
    save_file(state, file)


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


def test_another_model_type_is_named(folder):
    change_config(folder, model_type="mamba")
    assert "model_type is 'mamba', not 'caduceus'" in fault_of(folder, ValueError)


def test_weights_that_are_cut_off_or_no_weights(folder):
    file = folder / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:-100])
    assert "model.safetensors: is no valid safetensors file" in fault_of(folder, OSError)
    file.write_bytes(b"version https://git-lfs.github.com/spec/v1\n" * 3)
    assert "model.safetensors" in fault_of(folder, OSError)


def test_weights_with_a_tensor_missing_misshapen_or_not_finite(folder):
    norm = "caduceus.backbone.norm_f.weight"
    whole = (folder / "model.safetensors").read_bytes()
    change_weights(folder, drop=norm)
    assert f"lacks '{norm}'" in fault_of(folder, OSError)
    (folder / "model.safetensors").write_bytes(whole)
    change_weights(folder, **{norm: torch.ones(7)})
    assert f"'{norm}' has the shape (7,), not (12,)" in fault_of(folder, OSError)
    change_weights(folder, **{norm: torch.full((12,), torch.nan)})
    assert f"tensor '{norm}' has values that are not finite" in fault_of(folder, OSError)


def test_a_pickle_that_would_run_code_runs_none(folder, tmp_path):
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "sprung",))

    (folder / "model.safetensors").unlink()
    torch.save({"state_dict": Trap()}, folder / "pytorch_model.bin")
    assert "pytorch_model.bin" in fault_of(folder, OSError)
    assert not (tmp_path / "sprung").exists()


def test_config_and_weights_that_do_not_belong_together(folder):
    change_config(folder, d_model=16)
    assert "do not fit each other" in fault_of(folder, OSError)
    change_config(folder, d_model=12, fused_add_norm=False)
    assert "set fused_add_norm to true" in fault_of(folder, ValueError)
    change_config(folder, fused_add_norm=True, d_model=-1)
    assert "d_model is -1: must be a whole number" in fault_of(folder, ValueError)


def test_a_scrambled_complement(folder):
    pairs = dict(CONFIG["complement_map"]) | {"7": 8, "8": 7, "9": 10, "10": 9}
    change_config(folder, complement_map=pairs)
    assert f"'{WORDS}.complement_map' differs" in fault_of(folder, OSError)
    change_config(folder, complement_map=pairs | {"7": 9})
    assert "not its own inverse" in fault_of(folder, ValueError)


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


def test_a_head_of_another_size_is_transformers_affair(folder, tmp_path):
    AutoModelForSequenceClassification.from_pretrained(folder, num_labels=3).save_pretrained(
        tmp_path / "three"
    )
    with pytest.raises(RuntimeError, match="ignore_mismatched_sizes"):
        AutoModelForSequenceClassification.from_pretrained(tmp_path / "three", num_labels=5)
    wide = AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "three", num_labels=5, ignore_mismatched_sizes=True
    )
    assert wide.score.weight.shape == (5, 12)


def test_a_head_of_somebody_else_is_reported_and_not_used(folder):
    change_weights(folder, **{"decoder.layers.0.weight": torch.ones(2, 2)})
    _, told = AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True)
    assert told["unexpected_keys"] == {"decoder.layers.0.weight"}
    assert not told["missing_keys"]


def test_a_missing_repository_is_transformers_own_error():
    with pytest.raises(OSError, match=r"nobody/nothing|cached files"):
        AutoConfig.from_pretrained("nobody/nothing", local_files_only=True)
