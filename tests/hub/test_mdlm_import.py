"""Networks of the MDLM family: Hugging Face folders and Lightning files come in with the same
logits, averages and all.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from published_folders import (
    DIT,
    MAMBAS,
    assert_code,
    change_state,
    make_mdlm,
    mdlm_state,
    sample_ids,
    write_mdlm,
)
from safetensors.torch import load_file

from genodiff.backbones.dimamba import DiMambaSettings
from genodiff.errors import CheckpointError
from genodiff.hub.adopt import adopt_network
from genodiff.hub.export import export_model
from genodiff.hub.mdlm_layout import make_mdlm_config, map_mdlm_names
from genodiff.hub.source import read_source
from genodiff.runs.model import load_model


def same_logits(ours: Any, theirs: Any, atol: float = 1e-5) -> None:
    ids, sigma = sample_ids(), torch.tensor([0.1, 0.5, 2.0])
    with torch.no_grad():
        found, wanted = (network(ids, sigma)[..., :12] for network in (ours, theirs))
    torch.testing.assert_close(found, wanted, rtol=0, atol=atol)


def same_files(one: Path, other: Path, *names: str) -> None:
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes()


def test_a_udlm_folder_of_the_reference_keeps_its_logits_and_comes_back_byte_for_byte(
    shared, tmp_path
):
    source = shared / "conformance" / "cases" / "hf_layout_udlm_tiny"
    adopt_network(read_source(source), tmp_path / "run")
    model, io = load_model(tmp_path / "run"), load_file(source / "io.safetensors")
    with torch.no_grad():
        got = model.backbone(io["in/input_ids"], io["in/timesteps_sigma"], labels=io["in/cond"])
    torch.testing.assert_close(got[..., :12], io["out/logits"], rtol=0, atol=2e-4)
    assert model.config.data.seq_len == 16
    assert model.objective.name == "uniform"
    export_model(tmp_path / "run", tmp_path / "out")
    same_files(tmp_path / "out", source, "model.safetensors")
    told = [json.loads((one / "config.json").read_text()) for one in (tmp_path / "out", source)]
    assert told[0] == told[1]


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "shape", [DIT, DIT.model_copy(update={"n_classes": 3}), *MAMBAS.values()], ids=str
)
def test_folders_come_in_with_their_logits_and_go_out_with_their_bytes(tmp_path, shape):
    theirs = make_mdlm(shape)
    write_mdlm(tmp_path / "hf", theirs)
    adopt_network(read_source(tmp_path / "hf"), tmp_path / "run")
    model = load_model(tmp_path / "run")
    assert model.config.backbone == shape
    same_logits(model.backbone, theirs)
    export_model(tmp_path / "run", tmp_path / "out")
    same_files(tmp_path / "out", tmp_path / "hf", "model.safetensors")


class DictConfig:
    """As omegaconf pickles its nodes: content under `_content`, values under `_val`."""

    def __init__(self, values: Any) -> None:
        self._parent = None
        if isinstance(values, dict):
            self._content = {k: DictConfig(v) for k, v in values.items()}
        else:
            self._val = values


def lightning(path: Path, raw: Any, average: Any, **changes: Any) -> None:
    """What MDLM's trainer writes: raw weights by name with tied ones twice, averages as a list of
    parameters.
    """
    state, mine = mdlm_state(raw), mdlm_state(average)
    table = [n for n in state if n.endswith("inv_freq")]
    order = [n for n in state if n not in table]
    for name in [n for n in state if "mamba_fwd.in_proj" in n or "mamba_fwd.out_proj" in n]:
        state[name.replace("_fwd", "_rev")] = state[name]
    if isinstance(raw.settings, DiMambaSettings) and raw.settings.tie_head:
        state["backbone.model.lm_head.weight"] = state[map_mdlm_names(raw.settings)["embedding"]]
    config = make_mdlm_config(raw.settings, raw.vocab_size, 64)
    flat = {"hidden_size": config.get("hidden_dim"), "n_heads": config.get("n_heads"), "length": 64}
    model = config.get("model") or flat
    nested = {"backbone": "dit", "parameterization": "subs"}
    nested["time_conditioning"] = raw.settings.time_conditioning
    nested["model"] = model | {"n_blocks": "${model.depth}"}  # which says nothing by itself
    content = {
        "epoch": 3, "global_step": 100, "state_dict": state,
        "optimizer_states": [{"state": {0: {"step": torch.tensor(1.0)}}}],
        "ema": {"decay": 0.9999, "num_updates": 100, "shadow_params": [mine[n] for n in order]},
        "hyper_parameters": {"config": DictConfig(nested),
        "tokenizer": SimpleNamespace(name="gpt2", path="/etc/passwd")},
    }  # fmt: skip
    torch.save(content | changes, path)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "shape", [DIT, MAMBAS["adaln"], MAMBAS["adaln, tied"], MAMBAS["add"]], ids=str
)
def test_a_lightning_file_gives_its_averages_or_with_raw_its_weights(tmp_path, shape):
    raw, average = make_mdlm(shape, seed=1), make_mdlm(shape, seed=2)
    lightning(tmp_path / "last.ckpt", raw, average)
    for source, theirs, averaged in (
        (tmp_path / "last.ckpt", average, True),
        (tmp_path, average, True),
        (tmp_path / "last.ckpt", raw, False),
    ):
        read = read_source(source, averaged=averaged)
        assert read.weights == ("averaged" if averaged else "raw")
        out = tmp_path.with_name(f"{tmp_path.name}_{source.name}_{averaged}")
        adopt_network(read, out)
        same_logits(load_model(out).backbone, theirs)
        assert read.seq_len == 64
        assert read.settings.time_conditioning == shape.time_conditioning


def test_averages_that_do_not_fit_are_refused_by_the_first_name(tmp_path):
    raw = make_mdlm(DIT)
    shadow = [x for n, x in mdlm_state(raw).items() if not n.endswith("inv_freq")]
    path = tmp_path / "last.ckpt"
    lightning(path, raw, raw, ema={"shadow_params": shadow[:-1]})
    n = len(shadow)
    for wrong, said in (
        (shadow[:-1], rf"{n - 1} averages for {n} parameters.*--raw"),
        ([*shadow[2::-1], *shadow[3:]], r"in the place of 'backbone\.\S+' has the shape"),
        (["x"], "no list of tensors"),
    ):
        lightning(path, raw, raw, ema={"shadow_params": wrong})
        with pytest.raises(CheckpointError, match=said):
            read_source(path)
    assert read_source(path, averaged=False).weights == "raw"


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("blocks.99999999.norm1.weight", lambda x: torch.ones(24), "layer"),
        ("blocks.9999999999999.norm1.weight", lambda x: torch.ones(24), "layer"),
        ("rotary_emb.inv_freq", lambda x: x * 2, "rotary"),
        ("vocab_embed.embedding", lambda x: x / 0, "not finite"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path, name, change, said):
    write_mdlm(tmp_path, make_mdlm(DIT))
    key = f"backbone.{name}"
    change_state(tmp_path, lambda state: state | {key: change(state.get(key))})
    with pytest.raises(CheckpointError, match=said) as caught:
        read_source(tmp_path)
    assert caught.value.fix


def test_a_network_of_text_needs_its_tokenizer_and_comes_back(tmp_path):
    theirs = make_mdlm(DIT, rows=259)  # 256 bytes, the end, the mask, the padding
    write_mdlm(tmp_path / "hf", theirs)
    with pytest.raises(CheckpointError, match="--tokenizer"):
        read_source(tmp_path / "hf")
    with pytest.raises(CheckpointError, match="259 rows"):
        read_source(tmp_path / "hf", tokenizer="text8")
    run, out = tmp_path / "run", tmp_path / "out"
    assert_code(0, "checkpoint", "import", str(tmp_path / "hf"), "--out", str(run), "--tokenizer",
                "bytes", "--threads", "1")  # fmt: skip
    model = load_model(run)
    assert (model.alphabet.domain, model.config.data.tokenizer) == ("text", "bytes")
    ids = torch.arange(40).reshape(2, 20)
    with torch.no_grad():
        found, wanted = (one(ids, torch.ones(2))[..., :259] for one in (model.backbone, theirs))
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)
    assert_code(0, "checkpoint", "export", str(run), "--out", str(out), "--threads", "1")
    same_files(out, tmp_path / "hf", "model.safetensors")


def test_tensors_that_are_not_read_are_counted_and_named(tmp_path, capsys):
    write_mdlm(tmp_path / "hf", make_mdlm(DIT))
    more = {"teacher.weight": torch.zeros(2), "teacher.bias": torch.ones(1)}
    change_state(tmp_path / "hf", lambda state: state | more)
    words = ["checkpoint", "import", str(tmp_path / "hf"), "--out", str(tmp_path / "run")]
    assert_code(0, *words, "--threads", "1")
    assert ", 2 tensors not read; sanity check" in capsys.readouterr().err
    card = json.loads((tmp_path / "run" / "model.json").read_text())
    assert card["data"]["source"]["unused"] == sorted(more)
