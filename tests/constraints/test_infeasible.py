"""Requests that nothing satisfies: each is named by a minimal conflict, with no evaluation. And a
few designs of each of the benchmark's 30 sets, read by its checker; and that it can see.
"""

import random
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from tiny_run import write_run
from torch import nn

import genodiff
from genodiff.errors import UsageError

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks" / "design"))

from stranger import find_faults
from violations import draw, list_sets, write_before

DNA = "GTCAGCATGACTTGCAGTACCTGATCAGGTTACGATCCAG"
CODING = "ATGTGGAAAGGTGCAGGC"  # MWKGAG


class Impossible(NamedTuple):
    """A sequence, its regions, rules, and the parts of its conflict."""

    text: str
    regions: list[tuple[int, int]] | None
    rules: dict[str, Any]
    parts: list[str]


ALONE = {
    "a forbidden base": Impossible(DNA, [(3, 9)], {"avoid": ["N"]}, ["avoid N"]),
    "GC of kept bases": Impossible(
        "AATTAATTACGTAATT", [(0, 16)], {"keep": ["c:1-12"], "gc": ["50-100%"]}, ["GC 50-100 %"]
    ),
    "a kept site": Impossible(
        "ACGTGAATTCACGT", [(0, 14)], {"keep": ["c:4-11"], "enzymes": ["BamHI", "EcoRI"]},
        ["enzymes EcoRI"],
    ),
    "no place beside what is kept": Impossible(
        DNA, [(3, 15)], {"keep": ["c:8-11"], "require": ["CCGGAA"]}, ["require CCGGAA"]
    ),
    "every pair is a repeat": Impossible(
        DNA, [(3, 15)], {"no_repeats": ["1:all.fa"]}, ["no repeat of all.fa longer than 1"]
    ),
}  # fmt: skip
PAIRS = {
    "a site that is required": Impossible(
        DNA, [(5, 25)], {"require": ["GAATTC"], "enzymes": ["EcoRI"], "max_run": 5},
        ["require GAATTC", "enzymes EcoRI"],
    ),
    "a run that is required": Impossible(
        DNA, [(5, 25)], {"require": ["CAAAAAC"], "max_run": 4}, ["require CAAAAAC",
        "runs of at most 4"],
    ),
    "much GC and a word without": Impossible(
        DNA, [(5, 21)], {"require": ["ATATTAATTTAA"], "gc": ["50-100%"]},
        ["require ATATTAATTTAA", "GC 50-100 %"],
    ),
    "no edit and a new word": Impossible(
        DNA, [(5, 25)], {"max_edits": 0, "require": ["GGGGGG"], "max_run": 6},
        ["require GGGGGG", "at most 0 edits"],
    ),
    "a repeat that is required": Impossible(
        DNA, [(5, 25)], {"no_repeats": ["4:some.fa"], "require": ["TTGCATT"]},
        ["require TTGCATT", "no repeat of some.fa longer than 4"],
    ),
    "methionine without ATG": Impossible(
        CODING, [(0, 18)], {"protein": ["forward"], "avoid": ["CATG", "ATGT"]},
        ["avoid CATG, ATGT", "protein kept"],
    ),
    "all that is no stop is avoided": Impossible(
        "ATGTAAGGC", [(5, 6)], {"no_stop": ["c:1-9"], "avoid": ["GTAT", "GTAC"], "max_run": 5},
        ["no stop codon of 1-9", "avoid GTAT, GTAC"],
    ),
}  # fmt: skip
MORE = {
    "three words in too little room": Impossible(
        DNA, [(5, 20)], {"require": ["AAAAAA", "CCCCCC", "ACACGT"], "max_run": 9},
        ["require AAAAAA", "require CCCCCC", "require ACACGT"],
    ),
    "stops in every frame of either strand": Impossible(
        DNA, [(3, 30)], {"no_stop": ["forward", "reverse"], "require": ["TAACTAACTAA"],
                         "gc": ["0-90%"]},
        ["require TAACTAACTAA", "no stop codon", "no stop codon on the other strand"],
    ),
    "sets of a template": Impossible("ACGTSSSSSSAC", None, {"gc": ["0-50%"]},
                                     ["pattern ACGTSSSSSSAC", "GC 0-50 %"]),
    "the second of two regions": Impossible(
        DNA, [(2, 14), (15, 19)], {"require": ["GATTACA"]}, ["require GATTACA (c:16-19)"]
    ),
}  # fmt: skip
REQUESTS = ALONE | PAIRS | MORE


class Uncalled(nn.Module):
    """A network that must not be asked."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.place = nn.Parameter(torch.zeros(()))  # says which device it is on

    def forward(self, xt: torch.Tensor, *_: object) -> torch.Tensor:
        self.calls += 1
        return torch.zeros(*xt.shape, 16)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    loaded = genodiff.load(write_run(tmp_path_factory.mktemp("run")))
    return type(loaded)(loaded.trained._replace(network=Uncalled()))


@pytest.mark.parametrize("name", REQUESTS)
def test_what_cannot_be_met_is_named_before_any_evaluation(name, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("all.fa").write_text(">a\nAACAGATCCGCTGGTTA\n")
    Path("some.fa").write_text(">a\nACGGATGCAATC\n")
    asked = REQUESTS[name]

    with pytest.raises(UsageError) as caught:
        model.redesign({"c": asked.text}, 1, regions=asked.regions, rules=asked.rules, steps=2)
    assert model.trained.backbone.calls == 0
    head, _, parts = caught.value.what.partition(
        "contradict each other: " if len(asked.parts) > 1 else "contradicts the fixed bases: "
    )
    assert head.startswith("c:")
    assert sorted(parts.split("; ")) == sorted(asked.parts)


@pytest.mark.slow
def test_designs_of_30_sets_violate_nothing(tmp_path):
    model = genodiff.load(write_run(tmp_path))
    sets = list_sets(tmp_path / "v.fa")
    assert len(sets) == 30
    drawn: set[tuple[int, str]] = set()
    for number, before, after in draw(model, sets, each=2, at_once=2, steps=2):
        assert find_faults(before, after, sets[number].regions, sets[number].rules) == []
        drawn.add((number, after))
    assert len(drawn) > 55  # of 60


FAULTS = {"avoid": "avoid", "require": "require", "enzymes": "enzyme", "max_run": "run",
          "gc": "GC", "max_edits": "edits", "protein": "protein", "no_stop": "stop",
          "keep": "kept", "no_repeats": "repeat"}  # fmt: skip
"""How the checker's line about each rule begins; that about edits, with their number."""


@pytest.mark.parametrize("number", range(30))
def test_the_checker_finds_fault_with_random_bases(number, tmp_path):
    asked = list_sets(tmp_path / "v.fa")[number]
    missing = {FAULTS[name] for name in asked.rules if name in FAULTS}
    for seed in range(300):
        before = write_before(asked, seed)
        after = list(before)
        for a, b in asked.regions:
            after[a:b] = random.Random(seed).choices("ACGT", k=b - a)
        for fault in find_faults(before, "".join(after), asked.regions, asked.rules):
            kind = fault.split()[0]
            missing -= {"edits" if kind.isdecimal() else kind}
        if not missing:
            return
    raise AssertionError(missing)


def test_a_change_beyond_the_regions_is_seen():
    before = "ACGTACGTAC"
    assert find_faults(before, "ACGTTCGTAC", [(4, 6)], {}) == []
    assert find_faults(before, "ACCTACGTAC", [(4, 6)], {}) == ["kept base"]
    assert find_faults(before, "ACGTaCGTAC", [(4, 6)], {}) == []
    assert find_faults(before, "ACgTACGTAC", [(4, 6)], {}) == ["kept base"]
