"""Out and back again: transformers' folders in genodiff, genodiff's runs in transformers."""

import json
from pathlib import Path

import pytest
import torch
from hf_folders import logits_of, write_with_remote_code
from safetensors.torch import load_file
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

import genodiff
import genodiff.hf
from genodiff.errors import CheckpointError, UsageError
from genodiff.hub.adopt import SCORE, adopt_network
from genodiff.hub.source import read_source
from genodiff.runs.model import load_model
from tests.commands import exit_code
from tests.hub.published_folders import PLANT, sample_ids, write_published
from tests.tiny_run import NETWORK, write_run


def run_logits(run: Path, ids: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return load_model(run).backbone(ids)


@pytest.mark.parametrize("changes", [{}, {"rcps": False}, {"fused_add_norm": False}], ids=str)
def test_what_is_saved_is_read_by_both_to_the_same_bits(tmp_path, changes):
    write_with_remote_code(tmp_path / "hub", **changes)
    ids, saved = sample_ids(), tmp_path / "saved"
    wanted = logits_of(tmp_path / "hub", ids)
    model = AutoModelForMaskedLM.from_pretrained(tmp_path / "hub")
    model.save_pretrained(saved)
    genodiff.hf.CaduceusTokenizer().save_pretrained(saved)
    assert torch.equal(logits_of(saved, ids), wanted)
    with torch.no_grad():
        assert torch.equal(genodiff.load(saved, device="cpu").network(ids), wanted)
    adopt_network(read_source(saved), tmp_path / "run")
    assert torch.equal(run_logits(tmp_path / "run", ids), wanted)
    before = load_file(tmp_path / "hub" / "model.safetensors")
    after = load_file(saved / "model.safetensors")
    assert before.keys() == after.keys()
    assert all(torch.equal(x, after[name]) for name, x in before.items())


def test_a_saved_config_is_the_published_one_with_its_ids_in_order(tmp_path):
    write_with_remote_code(tmp_path / "hub")
    AutoModelForMaskedLM.from_pretrained(tmp_path / "hub").save_pretrained(tmp_path / "saved")
    before = json.loads((tmp_path / "hub" / "config.json").read_text())
    after = json.loads((tmp_path / "saved" / "config.json").read_text())
    # Published code reads the values of the map in their order.
    assert list(after["complement_map"]) == [str(i) for i in range(16)]
    changed = {"auto_map", "torch_dtype", "transformers_version"}
    kept = before.keys() - changed
    assert {n: after[n] for n in kept} == {n: before[n] for n in kept}
    added = {"dtype", "initializer_cfg", "tie_word_embeddings"}
    assert after.keys() - before.keys() <= added


@pytest.mark.parametrize("layout", ["caduceus", "safetensors"])
@pytest.mark.parametrize("strands", ["paired", "single"])
def test_an_exported_run_has_its_logits_in_transformers(tmp_path, strands, layout):
    run, ids = write_run(tmp_path, backbone=NETWORK | {"strands": strands}), sample_ids()
    folder = tmp_path / "hub"
    assert exit_code("checkpoint", "export", run, "--format", layout, "--out", folder) == 0
    assert torch.equal(logits_of(folder, ids), run_logits(run, ids))
    found = AutoTokenizer.from_pretrained(folder)
    assert type(found) is genodiff.hf.CaduceusTokenizer
    assert found("ACGTN")["input_ids"] == [7, 8, 9, 10, 11, 1]
    assert (found.complement_map[7], found.model_max_length) == (10, 64)
    assert AutoModel.from_pretrained(folder)(ids).last_hidden_state.shape[:2] == ids.shape
    assert AutoModelForSequenceClassification.from_pretrained(folder, num_labels=3).num_labels == 3


def test_a_run_becomes_a_model_and_a_published_folder(tmp_path):
    run, ids = write_run(tmp_path), sample_ids()
    model, tokenizer = genodiff.hf.from_run(run)
    assert not model.training
    with torch.no_grad():
        assert torch.equal(model(ids).logits, run_logits(run, ids))
    assert tokenizer.model_max_length == 64
    model.save_pretrained(tmp_path / "hub")
    tokenizer.save_pretrained(tmp_path / "hub")
    assert exit_code("checkpoint", "import", tmp_path / "hub", "--out", tmp_path / "back") == 0
    assert torch.equal(run_logits(tmp_path / "back", ids), run_logits(run, ids))


def test_an_imported_plant_run_goes_out_with_its_own_ids(tmp_path):
    theirs = write_published(tmp_path / "hub", **PLANT)
    adopt_network(read_source(tmp_path / "hub"), tmp_path / "run")
    model, _ = genodiff.hf.from_run(tmp_path / "run")
    ids = torch.randint(0, 7, (2, 30), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(model(ids).logits, theirs(ids), rtol=0, atol=0)


def test_a_classifier_keeps_its_head_and_its_pooling(tmp_path):
    write_with_remote_code(tmp_path / "hub")
    ids = sample_ids()
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "hub", num_labels=3, pooling_strategy="max"
    )
    model.save_pretrained(tmp_path / "saved")
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved")
    assert (again.config.num_labels, again.config.pooling_strategy) == (3, "max")
    assert torch.equal(again(ids).logits, model(ids).logits)
    adopt_network(read_source(tmp_path / "saved"), tmp_path / "run")
    score = load_file(tmp_path / "run" / SCORE)["score.weight"]
    assert torch.equal(score, model.score.weight)


def test_the_bare_model_reads_every_folder_and_is_read_by_every_model(tmp_path):
    write_with_remote_code(tmp_path / "hub")
    ids = sample_ids()
    bare = AutoModel.from_pretrained(tmp_path / "hub")
    full = AutoModelForMaskedLM.from_pretrained(tmp_path / "hub")
    wanted = full(ids, output_hidden_states=True).hidden_states[-1]
    assert torch.equal(bare(ids).last_hidden_state, wanted)
    bare.save_pretrained(tmp_path / "bare")
    assert torch.equal(logits_of(tmp_path / "bare", ids), full(ids).logits.detach())


def test_runs_that_cannot_be_published_are_refused_in_one_line(tmp_path):
    run = write_run(tmp_path, backbone={"kind": "dimamba", "d_model": 16, "n_layer": 1})
    with pytest.raises(UsageError, match="of the kind dimamba"):
        genodiff.hf.from_run(run)
    with pytest.raises(CheckpointError, match="not found"):
        genodiff.hf.from_run(tmp_path / "nowhere")
