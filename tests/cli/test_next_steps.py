"""The last line of a command names what to do with its output."""

import shlex
from pathlib import Path

import pytest

from genodiff.conservation.request import AlignRequest, ConstraintRequest
from genodiff.design.request import RedesignRequest
from genodiff.embedding.request import EmbedRequest
from genodiff.generate.request import SampleRequest
from genodiff.maps.request import TracksRequest

RELATED = {"relatives": ["near.fa"]}
CASES = {
    "page": (ConstraintRequest("g.fa", out="c", **RELATED), {"bases": 9}, "open c/constraint.html"),
    "shard": (ConstraintRequest("g.fa", out="1.npy", shard="1/2", **RELATED), {"bases": 9}, "all"),
    "paf": (
        AlignRequest("g.fa", out="n.paf", **RELATED), {"bases": 9, "aligned": 8},
        "genodiff constraint g.fa --relatives near.fa:n.paf -o constraint",
    ),
    "tracks": (
        TracksRequest("none", "g.fa", out="t"),
        {"intervals": [1], "bases": 9, "files": ["tracks.html"]}, "open t/tracks.html",
    ),
    "embeddings": (
        EmbedRequest("yeast", "g.fa", out="e.npz"), {"windows": 1, "bases": 9},
        "numpy.load('e.npz')['embeddings'] in Python",
    ),
    "samples": (
        SampleRequest("yeast", out="s.fa"), {"records": [], "evaluations": 1},
        "genodiff scorecard s.fa --real GENOME.fa",
    ),
    "filled": (
        SampleRequest("yeast", out="s.fa", template="t.fa"), {"records": [], "evaluations": 1}, "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_last_line_says_what_comes_next(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("near.fa").write_text(">a\nACGT\n")
    request, told, wanted = CASES[name]
    said = request.conclude(told).partition("; next: ")
    assert (wanted in said[2]) if wanted else not said[1]
    assert shlex.split(said[2])[:1] != [""]


def test_a_redesign_says_what_was_met_and_what_it_wrote():
    told = {
        "records": [{"length": 60, "edits": 2, "filled": 0}], "evaluations": 57, "run": "none",
        "relatives": {"genomes": []}, "constraints": ["at most 4 edits"],
    }  # fmt: skip
    asked = RedesignRequest("none", out="d.gb", fasta="g.fa", region=["c:1-60"])
    said = asked.conclude(told)
    assert "constraints met: at most 4 edits" in said
    assert "given the related genomes, no score is optimised" in said
    assert said.endswith("edits in d.gb.vcf and d.gb.bed")
    guided = asked.conclude({**told, "run": "yeast", "guidance": "smc"})
    assert "given the model and the related genomes, guided (smc)" in guided
