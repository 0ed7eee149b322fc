"""Caduceus, DiT and DiMamba under published names: there and back, tied tensors left out, the
complement map, sizes from shapes; what contradicts is refused.
"""

import json
from typing import Any

import pytest
import torch
from published_folders import COMPLEMENT, CONFIG, network, state_of
from tiny_networks import dimamba, dit
from torch import Tensor

from genodiff.errors import CheckpointError
from genodiff.hub.caduceus import (
    from_published,
    map_names,
    read_published_complement,
    read_published_settings,
)
from genodiff.hub.mdlm_layout import (
    TABLE,
    find_prefix,
    from_published_mdlm,
    make_mdlm_config,
    map_mdlm_names,
    to_published_mdlm,
)
from genodiff.hub.tensor_names import list_parameters, reshape_as_published

DITS: list[dict[str, Any]] = [{}, {"time_conditioning": True, "n_classes": 3}]
DIMAMBAS: list[dict[str, Any]] = [
    {"dropout": 0.1}, {"n_classes": 3, "tie_head": True, "dropout": 0.1}, {"conditioning": "add",
    "residual": False},
    {"conditioning": "concat", "residual": False, "spare_rows": 6, "tie_head": True},
    {"conditioning": "concat", "residual": False, "spare_rows": 6},
    {"conditioning": "none", "time_conditioning": False, "residual": False},
]  # fmt: skip
NETWORKS = {f"dit {form}": dit(**form) for form in DITS} | {
    f"dimamba {form}": dimamba(**form) for form in DIMAMBAS
}


def published(
    name: str, prefix: str = "backbone."
) -> tuple[Any, dict[str, Tensor], dict[str, Any]]:
    model = NETWORKS[name]
    tensors = {k: p.detach() for k, p in model.named_parameters()}
    state = to_published_mdlm(model.settings, tensors, prefix)
    if "none" in name:  # a map that nothing reads
        for i, width in ((0, 256), (2, 6)):
            state[f"{prefix}sigma_map.mlp.{i}.weight"] = torch.zeros(6, width)
            state[f"{prefix}sigma_map.mlp.{i}.bias"] = torch.zeros(6)
    config = make_mdlm_config(model.settings, model.vocab_size, 16)
    return model, state, json.loads(json.dumps(config))


@pytest.mark.parametrize("prefix", ["backbone.", ""])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_survives_the_way_to_the_published_names_and_back(name, prefix):
    model, state, config = published(name, prefix)
    assert find_prefix(state) == prefix
    settings, tensors = from_published_mdlm(state, config)
    same = {"d_cond": settings.d_cond} if "add" in name else {}
    assert settings == model.settings.model_copy(update=same)
    assert tensors.keys() == dict(model.named_parameters()).keys()
    assert all(torch.equal(tensors[k], p) for k, p in model.named_parameters())
    again = to_published_mdlm(settings, tensors, prefix)
    assert all(torch.equal(again[k], state[k]) for k in again)


@pytest.mark.parametrize("name", [n for n in NETWORKS if "add" not in n])
def test_sizes_need_no_config(name):
    model, state, _ = published(name)
    found = from_published_mdlm(state)[0]
    same = ("d_model", "n_layer", "d_cond", "n_classes")
    assert [getattr(found, key) for key in same] == [getattr(model.settings, key) for key in same]


def test_tied_tensors_of_a_lightning_file_must_agree_and_averages_are_of_parameters_once():
    model, state, config = published("dimamba {'n_classes': 3, 'tie_head': True, 'dropout': 0.1}")
    for name in [n for n in state if "mamba_fwd.in_proj" in n or "mamba_fwd.out_proj" in n]:
        state[name.replace("fwd", "rev")] = state[name]
    words = next(n for n in state if n.endswith("word_embeddings.weight"))
    state["backbone.model.lm_head.weight"] = state[words]
    assert from_published_mdlm(state, config)[1].keys() == dict(model.named_parameters()).keys()
    names = set(map_mdlm_names(model.settings).values())
    assert set(list_parameters(state, tied_head=True)) == names
    with pytest.raises(CheckpointError, match="should equal"):
        from_published_mdlm(state | {"backbone.model.lm_head.weight": state[words] + 1}, config)
    _, of_dit, _ = published("dit {}")
    assert set(list_parameters(of_dit)) == set(of_dit) - {f"backbone.{TABLE}"}


def test_what_contradicts_the_config_or_itself_is_refused():
    _, state, config = published("dit {}")

    def refused(named: str, changed: dict[str, Any] | None = None, **told: Any) -> None:
        with pytest.raises(CheckpointError, match=named):
            from_published_mdlm(changed if changed is not None else state, config | told)

    refused("hidden_dim is 32 in the config, but the tensors say 16", hidden_dim=32)
    refused("n_blocks", n_blocks=3)
    refused("cond_dim", cond_dim=3)
    refused("n_heads is 4", n_heads=4)
    refused("vocab_size", vocab_size=99)
    lacking = {k: v for k, v in state.items() if "1.norm2" not in k}
    refused("lacks 'backbone.blocks.1.norm2.weight'", lacking)
    refused("no place for 'backbone.extra'", state | {"backbone.extra": torch.zeros(1)})
    refused("shape", state | {"backbone.blocks.0.attn_qkv.weight": torch.zeros(3, 16)})
    refused("neither a DiT nor a DiMamba", {"x": torch.zeros(1)})
    headless = {k: v for k, v in state.items() if not k.endswith(TABLE)}
    assert from_published_mdlm(headless, config)[0].n_head == 2  # type: ignore[union-attr]
    with pytest.raises(CheckpointError, match="number of heads"):
        from_published_mdlm(headless)
    _, state, config = published("dimamba {'dropout': 0.1}")
    other = config["model"] | {"temb_strategy": "add"}
    refused("temb_strategy adaln, not of add", state, model=other)
    _, state, config = published("dimamba {'conditioning': 'add', 'residual': False}")
    with pytest.raises(CheckpointError, match="temb_strategy"):
        from_published_mdlm(state)


def test_forms_that_were_never_published_have_no_published_config():
    dits = [dit(**{form: form != "adaln"}) for form in ("adaln", "causal", "tie_head")]
    for model in (*dits, dimamba(conditioning="add")):
        with pytest.raises(CheckpointError):
            make_mdlm_config(model.settings, 9, 16)


def test_norms_that_are_wrapped_as_in_files_saved_without_fusion_are_read_too():
    model = network(CONFIG)
    names = map_names(model.settings, submodules=True)
    state = {
        names[here]: reshape_as_published(names[here], p.detach())
        for here, p in model.named_parameters()
    }
    found = from_published(state, CONFIG)[1]
    assert all(torch.equal(found[name], p) for name, p in model.named_parameters())


def test_the_fused_path_on_both_strands_alternates_them_and_no_other_does():
    silent = {k: v for k, v in CONFIG.items() if k != "fused_add_norm"}
    for config in (CONFIG, silent):
        assert read_published_settings(config).alternate_strands
        for change in ({"fused_add_norm": False}, {"rcps": False}):
            assert not read_published_settings(config | change).alternate_strands


def test_the_complement_map_is_read_by_number_whatever_the_order_of_its_keys():
    scrambled = dict(sorted({str(i): COMPLEMENT[i] for i in range(16)}.items()))
    assert list(scrambled)[:3] == ["0", "1", "10"]
    assert read_published_complement({"complement_map": scrambled}, 16) == COMPLEMENT
    bases = {"7": 10, "10": 7, "8": 9, "9": 8}
    assert read_published_complement({"complement_map": bases}, 16) == COMPLEMENT
    assert read_published_complement({}, 16) is None
    for wrong in ({"7": 10}, {"7": 99, "99": 7}):
        with pytest.raises(CheckpointError, match="own inverse"):
            read_published_complement({"complement_map": wrong}, 16)


def test_tied_tensors_may_be_there_if_they_agree():
    state = state_of(network(CONFIG), CONFIG)
    mixer = "caduceus.backbone.layers.1.mixer.submodule"
    twins = {
        "lm_head.lm_head.weight": "caduceus.backbone.embeddings.word_embeddings.embedding.weight",
        f"{mixer}.mamba_rev.in_proj.weight": f"{mixer}.mamba_fwd.in_proj.weight",
    }
    for name, twin in twins.items():
        _, tensors = from_published(state | {name: state[twin]}, CONFIG)
        assert tensors.keys() == from_published(state, CONFIG)[1].keys()
        with pytest.raises(CheckpointError, match="should equal"):
            from_published(state | {name: state[twin] + 1}, CONFIG)
