"""Shards of embeddings and evaluations: merged they are one run, byte for byte."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_networks
import torch
from tiny_run import genome_text

import genodiff
from genodiff.errors import DataError, UsageError

MOVING = ("seconds", "created", "device")


@pytest.fixture
def fasta(tmp_path, monkeypatch):
    """Records of different lengths, so that batches of a shard are padded otherwise."""
    monkeypatch.chdir(tmp_path)
    letters = "".join(genome_text(seed=3).split("\n")[1:])[:4000]
    cuts = np.cumsum([0, 7, 64, 1, 130, 33, 64, 65, 200, 12, 99, 64, 3])
    rows = [f">r{i}\n{letters[a:b]}\n" for i, (a, b) in enumerate(pairwise(cuts))]
    (tmp_path / "in.fa").write_text("".join(rows))
    return tmp_path / "in.fa"


ORDER = {"order": "confidence", "order_options": {"steps": 16}}


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("n", "repeats", "more"), [(1, 1, {}), (3, 2, ORDER), (5, 1, {}), (2, 1, {"memory": "on"})]
)
def test_a_merged_evaluation_is_that_of_one_run(run, tmp_path, monkeypatch, n, repeats, more):
    monkeypatch.chdir(tmp_path)
    options: dict[str, Any] = {"repeats": repeats, "batch_size": 2, "seed": 4, **more}
    whole = genodiff.evaluate(run, **options)
    kept = json.loads((run / "eval.json").read_text())
    names = [f"s{i}.npy" for i in range(1, n + 1)]
    for i, name in enumerate(names, 1):
        genodiff.evaluate(run, shard=f"{i}/{n}", out=name, **options)
    assert json.loads((run / "eval.json").read_text()) == kept
    merged = genodiff.merge(names[::-1], out="merged.json")
    assert json.loads(Path("merged.json").read_text()) == merged
    one, other = ({k: v for k, v in x.items() if k not in MOVING} for x in (merged, whole))
    assert one == other
    assert merged in json.loads((run / "eval.json").read_text()).values()


def test_what_is_no_shard_is_one_line(run, fasta):
    genodiff.embed(run, fasta, out="s1.npz", shard="1/2")
    genodiff.embed(run, fasta, out="s2.npz", shard="2/2", pool="max")
    genodiff.evaluate(run, shard="1/2", out="e1.npy", batch_size=2)
    with pytest.raises(DataError, match="shard 2 of 2 is missing"):
        genodiff.merge(["s1.npz"], out="m.npz")
    with pytest.raises(DataError, match="of another request"):
        genodiff.merge(["s1.npz", "s2.npz"], out="m.npz")
    with pytest.raises(DataError, match="of another request"):
        genodiff.merge(["s1.npz", "e1.npy"], out="m.npz")
    with pytest.raises(UsageError, match="none of 12 windows"):
        genodiff.embed(run, fasta, out="s.npz", shard="1/99")
    with pytest.raises(UsageError, match="no batch of"):
        genodiff.evaluate(run, shard="1/99", out="e.npy")
    for more in ({"context": "contig"}, {"max_minutes": 1.0}):
        with pytest.raises(UsageError, match="exclude each other"):
            genodiff.evaluate(run, shard="1/2", out="e.npy", **more)
    with pytest.raises(UsageError, match=r"\.npy"):
        genodiff.evaluate(run, shard="1/2", out="e.json")
    with pytest.raises(UsageError, match=r"written as \.json"):
        genodiff.evaluate(run, out="e.npy")


@pytest.mark.parametrize("strands", ["paired", "single"])
@pytest.mark.parametrize(("length", "at"), [(1, 0), (2, 0), (2, 1), (5, 2), (64, 31), (33, 32)])
def test_logits_at_one_position_are_those_of_all(strands, length, at):
    network = tiny_networks.network(strands=strands)
    xt = torch.from_numpy(np.random.default_rng(length).integers(7, 11, (3, length)))
    xt[:, at] = 3
    with torch.inference_mode():
        found, whole = network.logits_at(xt, at), network(xt)[:, at]
    assert torch.allclose(found, whole, atol=1e-5, rtol=1e-5)
    assert not torch.equal(found[0], found[1]) or length < 5
