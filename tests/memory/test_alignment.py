"""A relative's alignment against sums over all sequences of states, and against the memory's."""

import itertools

import numpy as np
import pytest
from made_up_text import NEEDS_LIBRARY, draw_bases, hide, mutate

from genodiff.memory import alignment
from genodiff.memory.alignment import (
    Aligned,
    align_window,
    align_windows,
    choose_diagonals,
    place_window,
)
from genodiff.memory.copying import SeenWindow, list_all_diagonals, recall_window
from genodiff.memory.fast import align_in_c
from genodiff.memory.memory import NOWHERE, Memory
from genodiff.memory.numbers import REACH, RELATIVE_SEARCH, MemoryNumbers, RelativeNumbers
from genodiff.memory.relatives import RelativeGenome, Relatives
from genodiff.memory.spellings import compare_spellings, sum_alignments
from genodiff.memory.text import NONE, join_stretches, turn_codes

NUMBERS = RelativeNumbers(
    copies=0.8, start=0.2, end=0.1, shift=0.2, turns=0.15,
    divergence=(0.02, 0.3), share=(0.4, 0.6), transitions=(0.7, 0.4),
)  # fmt: skip
GENOME = draw_bases(3000, 1)


def make_window(at: int, seed: int, share: float = 0.3, length: int = 300) -> np.ndarray:
    clean = mutate(GENOME[at : at + length + 3], 0.1, seed)
    return hide(np.delete(clean, [120, 121, 200]), share, seed)


def enumerate_states(
    text_codes: list[int], window: SeenWindow, n: RelativeNumbers
) -> tuple[np.ndarray, float, np.ndarray]:
    """over without each place's own base, the likelihood Z, and the likeliest places, own bases
    included, where the first class has more than half; by all sequences of states.
    """
    length = len(window.codes)
    states: list[tuple[int, int, int]] = [
        (strand, d, e)
        for strand, d in itertools.product((0, 1), range(1 - length, len(text_codes)))
        for e in range(len(n.share))
    ]
    harmonic = sum(1 / j for j in range(1, REACH + 1))
    size = len(states) + 1
    steps = np.zeros((size, size))
    steps[0, 0] = 1 - n.start
    first = np.zeros(size)
    first[0] = n.end / (n.start + n.end)
    for i, (strand, d, e) in enumerate(states, 1):
        rate = n.start * n.share[e] / window.n_loci
        steps[0, i], steps[i, 0], first[i] = rate, n.end, rate / (n.start + n.end)
        for j, (other, d2, e2) in enumerate(states, 1):
            if other != strand:
                continue
            far = abs(d - d2)
            if not far:
                steps[i, j] += n.turns * n.share[e2] + (n.stay if e == e2 else 0)
            elif far <= REACH and e == e2:
                steps[i, j] += n.shift / (2 * harmonic * far)

    source = np.full((length, size), NONE)  # the base that a state puts at a position
    table = np.ones((length, size))
    for i, (s, (strand, d, e)) in itertools.product(range(length), enumerate(states, 1)):
        at, x = d + (length - 1 - i if strand else i), int(window.codes[i])
        if 0 <= at < len(text_codes) and text_codes[at] != NONE:
            source[i, s] = 3 - text_codes[at] if strand else text_codes[at]
            seen = 1.0 if x == NONE else n.emission[e, source[i, s], x] / window.evidence[i]
        table[i, s] = seen if source[i, s] < NONE else 0.0

    paths = np.array(list(itertools.product(range(size), repeat=length)))
    chain = first[paths[:, 0]] * steps[paths[:, :-1], paths[:, 1:]].prod(1)

    def weigh(table: np.ndarray) -> np.ndarray:
        return chain * table[np.arange(length), paths].prod(1)

    over = np.zeros((length, len(n.share), 4))
    for i in range(length):
        without = table.copy()
        without[i] = [1.0, *(source[i, 1:] < NONE)]
        weights = np.bincount(paths[:, i], weigh(without), size)
        z = weights.sum()
        any_ = n.copies * z / (n.copies * z + 1 - n.copies)
        for s in range(1, size):
            if source[i, s] < NONE:
                over[i, states[s - 1][2], source[i, s]] += any_ * weights[s] / z
    whole = weigh(table).sum()
    through = np.stack([np.bincount(paths[:, i], weigh(table), size) for i in range(length)])
    any_ = n.copies * whole / (n.copies * whole + 1 - n.copies)
    places = np.full(length, -1)
    for i in range(length):
        alike = {
            2 * (d + (length - 1 - i if strand else i)) + strand: through[i, s]
            for s, (strand, d, e) in enumerate(states, 1)
            if e == 0
        }
        if any_ * sum(alike.values()) > 0.5 * whole:
            places[i] = max(alike, key=alike.__getitem__)
    return over, whole, places


@pytest.mark.parametrize("codes", [[0, NONE, 3], [2, 1, 3], [NONE, NONE, 1]])
def test_it_is_the_sum_over_all_sequences_of_states(codes):
    letters = [0, 1, 2, 3]
    text = join_stretches([("c", 0, np.array(letters, np.uint8))])
    x = np.array(codes, np.uint8)
    window = SeenWindow(x, np.where(x == NONE, 1.0, [0.3, 0.2, 0.25]), NOWHERE, 8)
    expected, z, _ = enumerate_states([*letters, NONE], window, NUMBERS)
    found = align_window(text, window, list_all_diagonals(text, 3), NUMBERS)
    np.testing.assert_allclose(found.over, expected, atol=1e-12)
    assert found.likelihood == pytest.approx(np.log(z), abs=1e-12)


@pytest.mark.parametrize("codes", [[1, 1, 2], [0, 1, 2], [0, NONE, 2]])
def test_places_are_the_likeliest_of_all_sequences_of_states(codes):
    numbers = RelativeNumbers(**{**NUMBERS.model_dump(), "share": (0.9, 0.1), "copies": 0.99})
    text = join_stretches([("c", 0, np.array([0, 1, 2, 2], np.uint8))])
    window = SeenWindow(np.array(codes, np.uint8), np.full(3, 0.1), NOWHERE, 8)
    expected = enumerate_states([0, 1, 2, 2, NONE], window, numbers)[2]
    given = text, window, list_all_diagonals(text, 3), numbers, np.array([True, False])
    assert (expected >= 0).any()
    assert place_window(*given).tolist() == expected.tolist()


def test_without_turns_and_transitions_it_is_the_memory_of_the_own_genome():
    plain = MemoryNumbers(divergence=(0.01, 0.2), share=(0.3, 0.7), start=0.01, shift=0.02)
    same = RelativeNumbers(**plain.model_dump(), turns=0.0, transitions=(1 / 3, 1 / 3))
    memory = Memory.build([("c", 0, GENOME)], numbers=plain)
    (window,) = memory.prepare(make_window(400, 1)[None])
    diagonals = memory.find(window)
    w0, copy = recall_window(memory.text, window, diagonals, plain)
    over = align_window(memory.text, window, diagonals, same).over
    hidden = window.codes == NONE
    np.testing.assert_allclose(1 - over.sum((1, 2))[hidden], w0[hidden], atol=1e-12)
    says = np.einsum("les,esc->lc", over, same.emission)
    np.testing.assert_allclose(says[hidden], copy[hidden], atol=1e-12)


def align(memory: Memory, codes: np.ndarray, numbers: RelativeNumbers) -> Aligned:
    (window,) = memory.prepare(codes[None])
    chosen = choose_diagonals(memory.text, window, memory.find(window), numbers)
    return align_window(memory.text, window, chosen, numbers)


def test_the_other_strand_lies_over_the_same_bases():
    memory, numbers = Memory.build([("c", 0, GENOME)]), RelativeNumbers()
    codes = make_window(700, 2)
    there, back = (align(memory, x, numbers) for x in (codes, turn_codes(codes)))
    np.testing.assert_allclose(back.over[::-1, :, ::-1], there.over, atol=1e-9)
    assert there.over.sum() > 200


def test_insertions_of_the_relative_are_followed():
    memory, numbers = Memory.build([("c", 0, GENOME)]), RelativeNumbers()
    over = align(memory, make_window(400, 3, share=0.1), numbers).over.sum(1)
    for at, shift in ((60, 0), (160, 2), (260, 3)):
        assert over[at, GENOME[400 + at + shift]] > 0.9


@pytest.mark.few(1)
@NEEDS_LIBRARY
@pytest.mark.parametrize("numbers", [RelativeNumbers(), NUMBERS])
def test_in_c_it_is_the_same(numbers):
    memory = Memory.build([("c", 0, GENOME[:1700]), ("d", 0, GENOME[1700:])])
    rows = [make_window(at, at, share) for at in (400, 1550) for share in (0.0, 0.3, 0.9)]
    rows += [turn_codes(rows[1]), draw_bases(300, 9)]
    windows = memory.prepare(np.stack(rows), [(0, 0)] * 3 + [(1500, 1600)] * 3 + [(0, 0)] * 2)
    found = [memory.find(window) for window in windows]
    over, likelihood = align_in_c(memory.text, windows, found, numbers)
    for i, (window, d) in enumerate(zip(windows, found, strict=True)):
        chosen = choose_diagonals(memory.text, window, d, numbers)
        slow = align_window(memory.text, window, chosen, numbers)
        np.testing.assert_allclose(over[i], slow.over, atol=1e-9)
        np.testing.assert_allclose(likelihood[i], slow.likelihood, atol=1e-7)
    for alike in (np.ones(len(numbers.share), bool), np.array(numbers.divergence) < 0.1):
        quick, _ = align_windows(memory.text, windows, found, numbers, alike, places=True)
        for i, (window, d) in enumerate(zip(windows, found, strict=True)):
            chosen = choose_diagonals(memory.text, window, d, numbers)
            naive = place_window(memory.text, window, chosen, numbers, alike)
            assert quick[i].tolist() == naive.tolist()
        assert (quick[:6:3] >= 0).mean() > 0.5


SPELLED = draw_bases(4000, 5)


def test_a_spelling_is_the_sum_over_all_alignments(monkeypatch):
    monkeypatch.setattr(alignment, "can_align", lambda _: False)
    monkeypatch.setattr(alignment, "choose_diagonals", lambda text, window, every, numbers: every)
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
    far = mutate(SPELLED, 0.1, 3)
    genomes = []
    for text in (np.delete(SPELLED, range(2000, 2003)), far):
        memory = Memory.build([("c", 0, text)], numbers=RELATIVE_SEARCH)
        genomes.append(RelativeGenome(memory, RelativeNumbers()))
    return Relatives(tuple(genomes), None)


def test_a_deletion_that_a_genome_has_is_likelier(relatives, monkeypatch):
    ref = SPELLED[1800:2200]
    same, other = np.delete(ref, range(200, 203)), np.delete(ref, range(120, 123))
    seen, new = (compare_spellings(relatives, ref, alt).log_ratio for alt in (same, other))
    assert seen[0] > 5 > 0 > new[0]
    assert seen[1] == pytest.approx(new[1], abs=3)
    monkeypatch.setattr(alignment, "can_align", lambda _: False)  # in NumPy
    np.testing.assert_allclose(compare_spellings(relatives, ref, same).log_ratio, seen, atol=1e-6)
    monkeypatch.undo()
    back = compare_spellings(relatives, same, ref).log_ratio
    np.testing.assert_allclose(seen, -back, atol=1e-9)


def test_what_lies_over_the_reference_is_that_of_its_alignment(relatives):
    ref = SPELLED[1000:1400]
    over = compare_spellings(relatives, ref, np.delete(ref, [200])).over
    expected = relatives.align(ref[None])[:, 0]
    np.testing.assert_allclose(over, expected, atol=0.02)


def test_where_no_genome_lies_the_evidence_is_left(relatives):
    """The chain of short words alone: a deleted base costs nothing but its own probability."""
    strange = draw_bases(300, 99)
    found = compare_spellings(relatives, strange, np.delete(strange, [150])).log_ratio
    assert (np.abs(found - np.log(4)) < 1).all()
