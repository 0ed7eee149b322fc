"""Repeats of a genome: numbers against slices, the automaton of what stood there, designs."""

import numpy as np
import pytest
from tiny_run import genome_text

import genodiff
from genodiff.constraints import repeats
from genodiff.constraints.check import find_conflict, find_violations
from genodiff.constraints.constraint import DesignSpace, MaxEdits, free_space
from genodiff.constraints.layers import is_feasible
from genodiff.constraints.repeats import (
    NoGenomeRepeats,
    NoRepeats,
    _sort_once,
    hash_stretches,
    read_repeats,
)

TURN = str.maketrans("ACGT", "TGCA")


def random_text(n: int, seed: int = 0) -> str:
    return "".join(np.random.default_rng(seed).choice(list("ACGT"), n))


def of_text(text: str, longest: int) -> NoGenomeRepeats:
    hashes, known = hash_stretches(text.encode(), longest + 1)
    return NoGenomeRepeats(longest, _sort_once([hashes[known]]))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 21, 31, 32, 33, 50, 64])
def test_equal_stretches_have_equal_numbers_and_others_do_not(size):
    text = random_text(300) + random_text(80, 1) + "N" + random_text(80, 1).lower() + "RT"
    hashes, known = hash_stretches(text.encode(), size)
    parts = [text[i : i + size].upper() for i in range(len(text) - size + 1)]
    assert len(hashes) == len(parts)
    assert known.tolist() == [not set(part) - set("ACGT") for part in parts]
    whole = [(part, int(h)) for part, h, good in zip(parts, hashes, known, strict=True) if good]
    assert len(set(whole)) == len({part for part, _ in whole}) == len({h for _, h in whole})
    assert len(hash_stretches(b"ACG", 4)[0]) == 0


@pytest.mark.parametrize("longest", [3, 6, 40])
def test_repeats_are_those_that_slices_find_on_both_strands(longest):
    genome, size = random_text(200), longest + 1
    turned = genome.translate(TURN)[::-1]
    text = random_text(60, 5) + genome[50:100] + random_text(20, 6) + turned[20:70]
    found = list(of_text(genome, longest).find_repeats(text, 30, 120))
    every = [i for i in range(len(text) - longest) if text[i : i + size] in genome]
    every += [i for i in range(len(text) - longest) if text[i : i + size] in turned]
    assert found == sorted({i for i in every if i < 120 and i + size > 30})
    assert found


def test_a_small_file_is_an_automaton_and_a_genome_is_numbers(tmp_path):
    (tmp_path / "small.fa").write_text(f">v\n{random_text(400)}\n")
    (tmp_path / "large.fa").write_text(f">c\n{random_text(30_000)}\n>d\nNNACGT\n")
    assert isinstance(read_repeats(str(tmp_path / "small.fa"), 12), NoRepeats)
    one = read_repeats(str(tmp_path / "large.fa"), 12)
    assert isinstance(one, NoGenomeRepeats)
    text = random_text(30_000)
    assert len(one.hashes) == len({text[i : i + 13] for i in range(len(text) - 12)})
    assert repr(one) == repr(of_text(text, 12)).replace("the FASTA file", one.source)


def test_what_stood_there_is_forbidden_before_anything_is_drawn():
    genome = random_text(500)
    rule, letters = of_text(genome, 9), genome[100:140]
    free = np.zeros(40, bool)
    free[15:25] = True
    space = DesignSpace(letters.encode(), free, 15, 25)
    assert len(rule.automata(space)) == 1
    assert rule.automata(free_space(40)) == []
    free[:] = True
    every = DesignSpace(letters.encode(), free, 0, 40)
    assert rule.automata(every) == []
    conflict = find_conflict(rule & MaxEdits(3), every)  # four stretches are disjoint
    assert {type(part) for part in conflict} == {NoGenomeRepeats, MaxEdits}
    assert is_feasible(rule & MaxEdits(4), every)
    kept = np.zeros(40, bool)
    kept[20] = True
    fixed = DesignSpace(letters.encode(), kept, 0, 40)
    assert list(find_conflict(rule, fixed)) == [rule]  # its kept bases alone are a repeat


@pytest.fixture(scope="module")
def model(run):
    return genodiff.load(run, device="cpu")


@pytest.mark.slow
def test_designs_of_a_genome_do_not_repeat_it(model, tmp_path):
    (tmp_path / "g.fa").write_text(genome_text() + f">more\n{random_text(30_000, 3)}\n")
    text = genome_text().split("\n")[1].upper()
    before = text[1000:1080]
    rule = read_repeats(str(tmp_path / "g.fa"), 10)
    assert isinstance(rule, NoGenomeRepeats)
    rules = {"no_repeats": [f"10:{tmp_path / 'g.fa'}"]}
    how = {"regions": [(30, 50)], "steps": 4}
    plain = model.redesign(before, 8, **how)
    found = model.redesign(before, 3, rules=rules, **how)
    assert any(find_violations(rule, one, before, 30, 50) for one in plain)
    for one in found:
        assert (one[:30], one[50:]) == (before[:30], before[50:])
        assert not find_violations(rule, one, before, 30, 50)
    assert found == model.redesign(before, 3, rules=rules, batch_size=1, **how)
    with pytest.raises(genodiff.errors.UsageError, match="none of 100 designs"):
        model.redesign(before, 1, rules={"no_repeats": [f"4:{tmp_path / 'g.fa'}"]}, **how)


def test_repeats_of_a_circular_file_go_round_its_origin(tmp_path, monkeypatch):
    path = tmp_path / "v.fa"
    path.write_text(">v [topology=circular]\nAACCGG\n>w\nTATATT\n")
    listed = repeats.read_repeats(str(path), 3)
    forward = {"AACC", "ACCG", "CCGG", "CGGA", "GGAA", "GAAC", "TATA", "ATAT", "TATT"}
    turned = {"GGTT", "CGGT", "CCGG", "TCCG", "TTCC", "GTTC", "TATA", "ATAT", "AATA"}
    assert set(listed.words) == forward | turned
    monkeypatch.setattr(repeats, "MOST_LISTED", 0)
    looked_up = repeats.read_repeats(str(path), 3)
    assert list(looked_up.find_repeats("TTGGAATT", 0, 8)) == [2]  # GGAA; TTGG stands nowhere
