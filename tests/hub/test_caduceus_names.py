"""Published files: names, tied tensors left out, the complement map, and what is refused."""

import json
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny_networks import COMPLEMENT, bases, network
from torch import Tensor

from genodiff.backbones.caduceus import Caduceus
from genodiff.errors import CheckpointError
from genodiff.hub.caduceus import (
    from_published,
    map_names,
    read_published_complement,
    read_published_settings,
)
from genodiff.hub.tensor_names import reshape_as_published

CONFIG: dict[str, Any] = {
    "d_model": 12, "n_layer": 2, "vocab_size": 12, "rcps": True, "fused_add_norm": True,
    "ssm_cfg": {"d_state": 4},
    "complement_map": {str(i): COMPLEMENT[i] for i in range(12)},
}  # fmt: skip


def as_published(model: Caduceus, *, submodules: bool = False) -> dict[str, Tensor]:
    """The network as its authors would save it: tied tensors left out."""
    names = map_names(model.settings, submodules=submodules)
    return {
        names[here]: reshape_as_published(names[here], p.detach().clone())
        for here, p in model.named_parameters()
    }


@pytest.mark.parametrize("name", ["hf_layout_ps_tiny", "hf_layout_ph_tiny"])
def test_files_as_the_reference_writes_them_give_its_logits(name, shared):
    folder = shared / "conformance" / "cases" / name
    config, state, io = (
        json.loads((folder / "config.json").read_text()), load_file(folder / "model.safetensors"),
        load_file(folder / "io.safetensors"),
    )  # fmt: skip
    settings, ours = from_published(state, config)
    model = settings.build(16, read_published_complement(config, 16))
    model.load_state_dict(ours)
    ids = next(x for key, x in io.items() if "ids" in key)
    wanted = {key: x for key, x in io.items() if key.endswith(("logits", "logits_f64"))}
    assert wanted
    for key, logits in wanted.items():
        double = logits.dtype == torch.float64
        with torch.no_grad():
            got = (model.double() if double else model.float())(ids)
        torch.testing.assert_close(got, logits, rtol=0, atol=1e-9 if double else 2e-4, msg=key)


@pytest.mark.parametrize("submodules", [False, True])
@pytest.mark.parametrize(
    "config",
    [
        {},
        {"rcps": False},
        {"fused_add_norm": False, "rms_norm": False},
        {"bidirectional_weight_tie": False, "bidirectional_strategy": "ew_multiply"},
        {
            "rcps": False,
            "bidirectional": False,
            "bidirectional_strategy": None,
            "tie_word_embeddings": False,
        },
        {
            "ssm_cfg": {
                "d_state": 3,
                "d_conv": 2,
                "expand": 1,
                "dt_rank": 5,
                "bias": True,
                "conv_bias": False,
            }
        },
    ],
    ids=str,
)
def test_a_network_survives_the_way_to_the_published_names_and_back(config, submodules):
    settings = read_published_settings(CONFIG | config)
    model = network(**settings.model_dump())
    back, ours = from_published(as_published(model, submodules=submodules), CONFIG | config)
    assert back == settings
    again = back.build(16, COMPLEMENT, seed=99)
    again.load_state_dict(ours)
    x = bases(2, 11)
    with torch.no_grad():
        assert torch.equal(model(x), again(x))


def test_the_fused_path_on_both_strands_alternates_them_and_no_other_does():
    assert read_published_settings(CONFIG).alternate_strands
    assert read_published_settings(
        {k: v for k, v in CONFIG.items() if k != "fused_add_norm"}
    ).alternate_strands
    assert not read_published_settings(CONFIG | {"fused_add_norm": False}).alternate_strands
    assert not read_published_settings(CONFIG | {"rcps": False}).alternate_strands


def test_the_complement_map_is_read_by_number_whatever_the_order_of_its_keys():
    scrambled = dict(sorted({str(i): COMPLEMENT[i] for i in range(16)}.items()))
    assert list(scrambled)[:3] == ["0", "1", "10"]
    assert read_published_complement({"complement_map": scrambled}, 16) == COMPLEMENT
    assert (
        read_published_complement({"complement_map": {"7": 10, "10": 7, "8": 9, "9": 8}}, 16)
        == COMPLEMENT
    )
    assert read_published_complement({}, 16) is None
    with pytest.raises(CheckpointError, match="own inverse"):
        read_published_complement({"complement_map": {"7": 10}}, 16)


def test_tied_tensors_may_be_there_if_they_agree():
    state = as_published(network(**read_published_settings(CONFIG).model_dump()))
    mixer = "caduceus.backbone.layers.1.mixer.submodule"
    twins = {
        "lm_head.lm_head.weight": "caduceus.backbone.embeddings.word_embeddings.embedding.weight",
        f"{mixer}.mamba_rev.in_proj.weight": f"{mixer}.mamba_fwd.in_proj.weight",
    }
    for name, twin in twins.items():
        assert (
            from_published(state | {name: state[twin]}, CONFIG)[1].keys()
            == from_published(state, CONFIG)[1].keys()
        )
        with pytest.raises(CheckpointError, match="should equal"):
            from_published(state | {name: state[twin] + 1}, CONFIG)


def test_half_precision_weights_become_float32():
    state = {
        name: x.half()
        for name, x in as_published(network(**read_published_settings(CONFIG).model_dump())).items()
    }
    assert {x.dtype for x in from_published(state, CONFIG)[1].values()} == {torch.float32}


def test_missing_foreign_and_misshapen_tensors_and_other_mixers_are_refused():
    state = as_published(network(**read_published_settings(CONFIG).model_dump()))
    first = next(iter(state))
    with pytest.raises(CheckpointError, match="no embedding"):
        from_published({name: x for name, x in state.items() if name != first}, CONFIG)
    with pytest.raises(CheckpointError, match=r"lacks 'caduceus\.backbone\.norm_f\.weight'"):
        from_published({name: x for name, x in state.items() if "norm_f" not in name}, CONFIG)
    with pytest.raises(CheckpointError, match=r"no place for 'score\.weight'"):
        from_published(state | {"score.weight": torch.zeros(2, 12)}, CONFIG)
    with pytest.raises(CheckpointError, match=r"A_log.*\(24, 3\).*\(24, 4\)"):
        from_published(
            {
                name: x[:, :3] if "0.mixer.submodule.mamba_fwd.A_log" in name else x
                for name, x in state.items()
            },
            CONFIG,
        )
    with pytest.raises(CheckpointError, match="Mamba2"):
        from_published(state, CONFIG | {"ssm_cfg": {"layer": "Mamba2"}})
    with pytest.raises(CheckpointError, match="d_model"):
        from_published(state, {k: v for k, v in CONFIG.items() if k != "d_model"})
