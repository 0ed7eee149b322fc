"""Two spellings of a window given a related genome, against sums over all sequences of states."""

import numpy as np
import pytest
from made_up_text import draw_bases, mutate
from test_alignment import NUMBERS, enumerate_states

from genodiff.memory import spellings
from genodiff.memory.copying import list_all_diagonals
from genodiff.memory.memory import Memory
from genodiff.memory.numbers import RELATIVE_SEARCH, RelativeNumbers
from genodiff.memory.relatives import RelativeGenome, Relatives
from genodiff.memory.spellings import compare_spellings, sum_alignments
from genodiff.memory.text import NONE

GENOME = draw_bases(4000, 5)


def test_a_spelling_is_the_sum_over_all_alignments(monkeypatch):
    monkeypatch.setattr(spellings, "can_align", lambda _: False)
    monkeypatch.setattr(spellings, "choose_diagonals", lambda text, window, every, numbers: every)
    letters = [0, 1, 2, 3]
    memory = Memory.build([("c", 0, np.array(letters, np.uint8))], numbers=NUMBERS)
    for alt in (np.array([2, 1, 3], np.uint8), np.array([2, 3], np.uint8)):
        (window,) = memory.prepare(alt[None])
        every = list_all_diagonals(memory.text, len(alt))
        found, _ = sum_alignments(memory, NUMBERS, window, every, over=False)
        z = enumerate_states([*letters, NONE], window, NUMBERS)[1]
        expected = np.log(NUMBERS.copies * z + 1 - NUMBERS.copies) + np.log(window.evidence).sum()
        assert found == pytest.approx(expected, abs=1e-9)


@pytest.fixture(scope="module")
def relatives():
    far = mutate(GENOME, 0.1, 3)
    genomes = []
    for text in (np.delete(GENOME, range(2000, 2003)), far):
        memory = Memory.build([("c", 0, text)], numbers=RELATIVE_SEARCH)
        genomes.append(RelativeGenome(memory, RelativeNumbers()))
    return Relatives(tuple(genomes), None)


def test_a_deletion_that_a_genome_has_is_likelier(relatives, monkeypatch):
    ref = GENOME[1800:2200]
    same, other = np.delete(ref, range(200, 203)), np.delete(ref, range(120, 123))
    seen, new = (compare_spellings(relatives, ref, alt).log_ratio for alt in (same, other))
    assert seen[0] > 5 > 0 > new[0]
    assert seen[1] == pytest.approx(new[1], abs=3)
    monkeypatch.setattr(spellings, "can_align", lambda _: False)  # in NumPy
    np.testing.assert_allclose(compare_spellings(relatives, ref, same).log_ratio, seen, atol=1e-6)
    monkeypatch.undo()
    back = compare_spellings(relatives, same, ref).log_ratio
    np.testing.assert_allclose(seen, -back, atol=1e-9)


def test_what_lies_over_the_reference_is_that_of_its_alignment(relatives):
    ref = GENOME[1000:1400]
    over = compare_spellings(relatives, ref, np.delete(ref, [200])).over
    expected = relatives.align(ref[None])[:, 0]
    np.testing.assert_allclose(over, expected, atol=0.02)


def test_where_no_genome_lies_the_evidence_is_left(relatives):
    """The chain of short words alone: a deleted base costs nothing but its own probability."""
    strange = draw_bases(300, 99)
    found = compare_spellings(relatives, strange, np.delete(strange, [150])).log_ratio
    assert (np.abs(found - np.log(4)) < 1).all()
