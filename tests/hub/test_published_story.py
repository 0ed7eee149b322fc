"""The commands of the page on published weights, in its order, with its words, on small weights."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import torch
from folders import ROOT, SHARED
from published_folders import assert_code, write_published
from safetensors.torch import load_file
from tiny_run import genome_text

from genodiff.hub.source import read_source
from genodiff.runs.model import load_model

HUB = "caduceus-ps_seqlen-131k_d_model-256_n_layer-16"
QUICK = "--seq-len 64 --batch-size 4 --max-steps 2 --validate-windows 0".split()


def commands() -> list[list[str]]:
    """Every command line of the section."""
    page = (ROOT / "docs" / "how-to" / "checkpoints.md").read_text()
    section = page.split("## Published weights", 1)[1].split("\n## ", 1)[0]
    blocks = re.findall(r"```console\n(.*?)```", section, re.DOTALL)
    return [
        shlex.split(line, comments=True)[1:]
        for block in blocks
        for line in block.splitlines()
        if line.startswith("genodiff ")
    ]


def test_a_published_caduceus_becomes_embeddings_continued_training_and_a_hub_folder(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    reference = SHARED / "conformance" / "cases" / "hf_layout_ps_tiny"
    if reference.is_dir():
        Path(HUB).symlink_to(reference)
    else:
        write_published(Path(HUB))
    Path("hg38.fa").write_text(genome_text())
    Path("variants.bed").write_text("c1\t100\t200\tfirst\nc2\t300\t401\tsecond\n")
    done = []
    for words in commands():
        more = ["--fasta", "hg38.fa", *QUICK] if words[0] == "train" else []
        words = [word for word in words if not (words[0] == "train" and word == "hg38")]
        assert_code(0, *words, *more, "--threads", "1", "-q")
        done.append(" ".join(words[:2] if words[0] == "checkpoint" else words[:1]))
    assert done == ["checkpoint import", "embed", "train", "checkpoint export"]
    with np.load("variants.npz") as found:
        assert found["embeddings"].shape[0] == 2
        assert found["name"].tolist() == ["first", "second"]
    provenance = json.loads(Path("runs/continued/provenance.json").read_text())
    assert provenance["sessions"][0]["init"]["logits_differ"] <= 1e-5
    back = read_source("to-the-hub")
    out, given = (load_file(f"{folder}/model.safetensors") for folder in ("to-the-hub", HUB))
    assert out.keys() == given.keys()
    trained = dict(load_model("runs/continued").backbone.named_parameters())
    assert all(torch.equal(x, trained[name]) for name, x in back.tensors.items())
    assert "license: apache-2.0" in Path("to-the-hub/README.md").read_text()
