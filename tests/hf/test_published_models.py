"""Published folders under transformers' Auto classes: the network's own logits, in every form."""

import json
import shutil
from typing import Any

import pytest
import torch
from folders import SHARED
from hf_folders import logits_of, write_with_remote_code
from safetensors.torch import load_file
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

import genodiff.hf
from genodiff.runs.run_paths import find_ready_model
from tests.hub.published_folders import (
    PLANT,
    change_state,
    halve,
    sample_ids,
    write_published,
)

FORMS: list[dict[str, Any]] = [
    {},
    {"fused_add_norm": False},
    {"rcps": False},
    {"rcps": False, "fused_add_norm": False, "rms_norm": False},
    {"bidirectional_weight_tie": False, "bidirectional_strategy": "ew_multiply"},
    {"rcps": False, "tie_word_embeddings": False, "bidirectional": False},
    {"n_layer": 3},
]


@pytest.fixture
def folder(tmp_path):
    write_with_remote_code(tmp_path / "hub")
    return tmp_path / "hub"


def same(ours: Tensor, theirs: Tensor, atol: float = 0) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=atol)


@pytest.mark.parametrize("changes", FORMS, ids=str)
def test_every_published_form_has_its_logits(tmp_path, changes):
    theirs = write_with_remote_code(tmp_path / "hub", **changes)
    ids = sample_ids()
    same(logits_of(tmp_path / "hub", ids), theirs(ids).detach())


@pytest.mark.parametrize("trust", [{}, {"trust_remote_code": False}, {"trust_remote_code": True}])
def test_remote_code_is_never_run(folder, trust):
    config = AutoConfig.from_pretrained(folder, **trust)
    assert type(config) is genodiff.hf.CaduceusConfig
    assert type(AutoTokenizer.from_pretrained(folder, **trust)) is genodiff.hf.CaduceusTokenizer
    for auto, own in [
        (AutoModel, genodiff.hf.Caduceus),
        (AutoModelForMaskedLM, genodiff.hf.CaduceusForMaskedLM),
        (AutoModelForSequenceClassification, genodiff.hf.CaduceusForSequenceClassification),
    ]:
        assert type(auto.from_pretrained(folder, **trust)) is own


def test_the_script_of_a_model_card_reads_both_strands_alike(folder, recwarn, capsys):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder)
    inputs = tokenizer("ACGTNacgt[MASK]", return_tensors="pt")
    with torch.inference_mode():
        out = model(**inputs, output_hidden_states=True)
        rc = torch.tensor([tokenizer.complement_map[i] for i in inputs["input_ids"][0].tolist()])
        other = model(rc.flip(0)[None]).logits.flip(1)
    assert (out.logits.shape, out.hidden_states[-1].shape) == ((1, 11, 16), (1, 11, 24))
    same(other[..., list(model.config.complement_map.values())], out.logits, atol=1e-5)
    assert not [one for one in recwarn if "genodiff" in one.filename]
    said = "".join(capsys.readouterr())
    assert not any(word in said for word in ("remote code", "custom code", "torch_dtype"))


@pytest.mark.parametrize("name", ["hf_layout_ps_tiny", "hf_layout_ph_tiny"])
def test_folders_that_the_reference_wrote_give_its_logits_and_parameters(name, shared):
    folder = shared / "conformance" / "cases" / name
    io = load_file(folder / "io.safetensors")
    same(logits_of(folder, io["in/input_ids"]), io["out/logits"], atol=2e-4)
    assert AutoTokenizer.from_pretrained(folder)("AC")["input_ids"] == [7, 8, 1]
    mine = set(AutoModelForMaskedLM.from_pretrained(folder).state_dict())
    layout = json.loads((folder / "layout.json").read_text())
    assert mine - {"lm_head.weight"} == set(layout["keys_in_file"])


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "name", sorted(p.stem for p in (SHARED / "conformance" / "cases").glob("caduceus_*.json"))
)
def test_golden_numbers_hidden_states_and_gradients_by_their_published_names(name, shared):
    file = shared / "conformance" / "cases" / name
    meta = json.loads(file.with_suffix(".json").read_text())["meta"]
    held = load_file(file.with_suffix(".safetensors"))
    weights = {n[len("param/") :]: x for n, x in held.items() if n.startswith("param/")}
    config, options = dict(meta["config"]), {}
    if "num_labels" in meta:
        config["num_labels"] = meta["num_labels"]
        options = {n: meta[n] for n in ("pooling_strategy", "conjoin_train", "conjoin_eval")}
    model = getattr(genodiff.hf, meta["cls"])(genodiff.hf.CaduceusConfig(**config), **options)
    found = model.double().train(meta.get("mode") == "train").load_state_dict(weights, strict=False)
    assert not found.unexpected_keys
    assert set(found.missing_keys) <= {"lm_head.weight"}
    labels = held.get("in/labels")
    out = model(held["in/input_ids"], labels=labels, output_hidden_states=True)
    same(out.logits, held["out/logits_f64"], atol=1e-9)
    hidden = sorted(n for n in held if n.startswith("out/hidden_") and n.endswith("_f64"))
    assert len(out.hidden_states) == (len(hidden) or len(out.hidden_states))
    for entry in hidden:
        same(out.hidden_states[int(entry.split("_")[1])], held[entry], atol=1e-9)
    if "in/input_ids_rc" in held:
        other = model(held["in/input_ids_rc"]).logits
        same(other, held["out/logits_of_rc_input_f64"], atol=1e-9)
    if labels is not None:
        loss = "out/ce_loss_f64" if "num_labels" in meta else "out/mlm_loss_f64"
        same(out.loss.reshape(1), held[loss], atol=1e-9)
        out.loss.backward()
        for entry, parameter in model.named_parameters():
            if f"grad_f64/{entry}" in held:
                same(parameter.grad, held[f"grad_f64/{entry}"], atol=1e-9)


def test_a_vocabulary_of_plants_keeps_its_ids_and_its_tokenizer(tmp_path):
    theirs = write_published(tmp_path, **PLANT)
    vocabulary = {"[PAD]": 0, "[MASK]": 1, "[UNK]": 2, "a": 3, "c": 4, "g": 5, "t": 6}
    tokenizer = {
        "version": "1.0", "added_tokens": [], "truncation": None, "padding": None,
        "normalizer": {"type": "Lowercase"}, "post_processor": None, "decoder": None,
        "pre_tokenizer": {"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated",
                          "invert": False},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
    }  # fmt: skip
    tmp_path.joinpath("tokenizer.json").write_text(json.dumps(tokenizer))
    tmp_path.joinpath("tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "mask_token": "[MASK]"})
    )
    ids = AutoTokenizer.from_pretrained(tmp_path)("ACGTNA[MASK]", return_tensors="pt")["input_ids"]
    assert ids.tolist() == [[3, 4, 5, 6, 2, 3, 1]]
    same(logits_of(tmp_path, ids), theirs(ids).detach())


def test_half_precision_becomes_the_type_of_the_config(folder):
    change_state(folder, halve)
    state = load_file(folder / "model.safetensors")
    model = AutoModelForMaskedLM.from_pretrained(folder)
    assert model.dtype == torch.float32
    for name, x in model.state_dict().items():
        same(x, state[name].float() if state[name].is_floating_point() else state[name])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_dtypes_devices_and_options_of_from_pretrained(folder, dtype):
    ids = sample_ids()
    wanted = logits_of(folder, ids)
    model = AutoModelForMaskedLM.from_pretrained(folder, dtype=dtype)
    assert model.dtype == getattr(torch, dtype)
    with torch.no_grad():
        found = model(ids).logits
    assert found.dtype == (torch.float64 if dtype == "float64" else torch.float32)
    atol = 1e-4 if dtype == "float64" else 0.1 * float(wanted.abs().max())
    same(found.float(), wanted, atol=atol)


def test_device_maps_and_old_options_change_nothing(folder):
    ids = sample_ids()
    wanted = logits_of(folder, ids)
    for options in (
        {"device_map": "cpu"}, {"device_map": "auto"},
        {"low_cpu_mem_usage": True, "torch_dtype": torch.float32}, {"use_safetensors": True},
        {"config": AutoConfig.from_pretrained(folder)},
    ):  # fmt: skip
        same(logits_of(folder, ids, **options), wanted)
    direct = genodiff.hf.CaduceusForMaskedLM.from_pretrained(str(folder))
    assert direct.name_or_path == str(folder)
    same(direct(ids).logits.detach(), wanted)


@pytest.mark.slow
def test_a_repository_of_the_hubs_cache_is_read_offline(folder, tmp_path, monkeypatch):
    cache = tmp_path / "cache" / "models--someone--caduceus"
    shutil.copytree(folder, cache / "snapshots" / ("0" * 40))
    cache.joinpath("refs").mkdir()
    cache.joinpath("refs", "main").write_text("0" * 40)
    options = {"cache_dir": str(tmp_path / "cache"), "local_files_only": True}
    ids = sample_ids()
    same(logits_of("someone/caduceus", ids, **options), logits_of(folder, ids))
    with pytest.raises(OSError, match="in the cached files"):
        AutoModelForMaskedLM.from_pretrained("someone/other", **options)


def test_a_model_without_a_file_is_drawn_as_published(folder):
    torch.manual_seed(1)
    model = AutoModelForMaskedLM.from_config(AutoConfig.from_pretrained(folder))
    state = model.state_dict()
    for name, x in state.items():
        end = name.rsplit(".", 2)[-2:]
        if end[-1] == "D" or "norm" in name:
            assert bool((x == 1).all()), name
        elif end[-1] == "A_log":
            same(x.exp(), torch.arange(1.0, x.shape[1] + 1).expand_as(x), atol=1e-5)
        elif end == ["dt_proj", "bias"]:
            dt = torch.nn.functional.softplus(x)
            assert 9e-4 < float(dt.min()) < float(dt.max()) < 0.11
        elif x.is_floating_point():
            assert float(x.std()) > 0, name
    table = state["caduceus.backbone.embeddings.word_embeddings.embedding.weight"]
    assert 0.015 < float(table.std()) < 0.025
    with torch.device("meta"):
        empty = AutoModelForMaskedLM.from_config(model.config)
    assert {p.device.type for p in empty.parameters()} == {"meta"}


def test_the_name_of_a_pretrained_model_is_its_folder():
    """Without the hub, which would look for a repository of that name for 45 s."""
    folder = find_ready_model("yeast")
    assert folder is not None
    assert genodiff.hf.folders.name_packaged("yeast") == str(folder)
    assert genodiff.hf.folders.name_packaged("someone/yeast") == "someone/yeast"
    assert AutoConfig.from_pretrained("yeast").model_type == "caduceus"
    assert type(AutoTokenizer.from_pretrained("yeast")).__name__ == "CaduceusTokenizer"
