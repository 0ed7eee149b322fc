"""Published folders become run folders: the same logits, every layout, and a look at the network
before anyone trusts it.
"""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from published_folders import (
    PLANT,
    assert_code,
    change_state,
    halve,
    same_logits,
    sample_ids,
    write_published,
)

from genodiff.errors import CheckpointError
from genodiff.hub.adopt import adopt_network
from genodiff.hub.source import read_source
from genodiff.runs.model import load_model


def imported(source: Path, out: Path) -> Any:
    adopt_network(read_source(source), out)
    return load_model(out).backbone


def test_a_hub_cache_of_links_is_read_and_a_link_out_of_the_folder_is_not(tmp_path):
    theirs = write_published(tmp_path / "hf")
    cache = tmp_path / "models--x"
    snapshot, blobs = cache / "snapshots" / "abc", cache / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(tmp_path / "hf" / name, blobs / f"sha-{name}")
        (snapshot / name).symlink_to(f"../../blobs/sha-{name}")
    same_logits(imported(snapshot, tmp_path / "run"), theirs)
    outside = tmp_path / "linked"
    outside.mkdir()
    for name in ("config.json", "model.safetensors"):
        (outside / name).symlink_to(tmp_path / "hf" / name)
    with pytest.raises(CheckpointError, match=r"config\.json: is a symlink that leads outside"):
        read_source(outside)


def test_half_precision_is_read_as_float32_with_a_word_about_it(tmp_path, caplog):
    theirs = write_published(tmp_path / "hf")
    change_state(tmp_path / "hf", halve)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(parameter.half().float())
    same_logits(imported(tmp_path / "hf", tmp_path / "run"), theirs)
    assert "F16" in caplog.text


def test_plant_caduceus_means_the_same_bases_under_our_ids(tmp_path):
    theirs = write_published(tmp_path / "hf", **PLANT)
    ours = imported(tmp_path / "hf", tmp_path / "run")
    back = {3: 1, 7: 3, 8: 4, 9: 5, 10: 6, 11: 2}  # our id → theirs; N is written as [UNK]
    ids = sample_ids()
    translated = torch.tensor([back.get(i, 0) for i in range(16)])[ids]
    with torch.no_grad():
        got, wanted = ours(ids), theirs(translated)
    got, wanted = got[..., [7, 8, 9, 10, 3, 11]], wanted[..., [3, 4, 5, 6, 1, 2]]
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-5)
    ids = {token: i for i, token in enumerate(["[PAD]", "[MASK]", "[UNK]", *"cagt"])}
    tokenizer = {"model": {"type": "WordLevel", "vocab": ids}}
    (tmp_path / "hf" / "tokenizer.json").write_text(json.dumps(tokenizer))
    said = "differs from that of plantcaduceus in its order: id 3 is not 'A'"
    with pytest.raises(CheckpointError, match=said):
        read_source(tmp_path / "hf")


def test_provenance_names_every_file_with_its_hash_and_the_probe(tmp_path):
    write_published(tmp_path / "hf")
    adopt_network(read_source(tmp_path / "hf"), tmp_path / "run")
    found = json.loads((tmp_path / "run" / "provenance.json").read_text())
    files = {f["name"]: f["sha256"] for f in found["data"]["source"]["files"]}
    assert files == {
        name: hashlib.sha256((tmp_path / "hf" / name).read_bytes()).hexdigest()
        for name in ("config.json", "model.safetensors")
    }
    probe = found["sessions"][0]["probe"]
    assert probe["strands_differ"] <= 1e-4
    assert probe["bits_per_base"] > 0


def test_weights_that_no_trained_network_has_are_imported_with_a_warning(tmp_path, caplog):
    write_published(tmp_path / "hf")
    word = "caduceus.backbone.embeddings.word_embeddings.embedding.weight"
    change_state(tmp_path / "hf", lambda state: state | {word: state[word] * 30})
    adopt_network(read_source(tmp_path / "hf"), tmp_path / "run")
    assert "are these trained weights?" in caplog.text


def test_training_into_an_imported_folder_is_refused_and_says_how_to_go_on(tmp_path, capsys):
    write_published(tmp_path / "hf")
    run = tmp_path / "run"
    assert_code(0, "checkpoint", "import", str(tmp_path / "hf"), "--out", str(run), "--json",
                "--threads", "1")  # fmt: skip
    assert json.loads(capsys.readouterr().out)["layout"] == "caduceus"
    (tmp_path / "x.fa").write_text(">a\n" + "ACGTTGCA" * 600 + "\n")
    before = {p.name: p.read_bytes() for p in run.iterdir()}
    assert_code(
        4, "train", "--resume", str(run), "--fasta", str(tmp_path / "x.fa"), "--threads", "1"
    )
    assert "--init" in capsys.readouterr().err
    assert {p.name: p.read_bytes() for p in run.iterdir() if p.name != ".lock"} == before
