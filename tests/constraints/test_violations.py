"""A few designs of each of the benchmark's 30 sets, read by its checker; and that it can see."""

import random
import sys
from pathlib import Path

import pytest
from tiny_run import write_run

import genodiff

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks" / "design"))

from stranger import find_faults
from violations import draw, list_sets, write_before


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
