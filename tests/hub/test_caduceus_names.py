"""Published files: names, tied tensors left out, the complement map, and what is refused."""

import pytest
import torch
from published_folders import COMPLEMENT, CONFIG, network, state_of

from genodiff.errors import CheckpointError
from genodiff.hub.caduceus import (
    from_published,
    map_names,
    read_published_complement,
    read_published_settings,
)
from genodiff.hub.tensor_names import reshape_as_published


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
