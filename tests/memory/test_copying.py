"""The model of copies against sums over all of its paths; the fit finds its numbers."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_text import draw_bases, hide, mutate

from genodiff.errors import DataError
from genodiff.memory.copying import weigh_diagonals
from genodiff.memory.fitting import fit_numbers, measure_bits
from genodiff.memory.memory import Memory
from genodiff.memory.numbers import MemoryNumbers
from genodiff.memory.tables import Chain, count_words, measure_evidence
from genodiff.memory.text import NONE, Codes, turn_codes

LENGTH = 12
NUMBERS = MemoryNumbers(
    copies=1.0, start=0.2, end=0.1, shift=0.0, divergence=(0.02, 0.3), share=(0.4, 0.6)
)
TRAIN = [
    ("one", 0, draw_bases(90, 1)),
    ("two", 7, draw_bases(70, 2)),
    ("two", 90, draw_bases(40, 3)),
]


@pytest.fixture(scope="module")
def memory():
    return Memory.build(TRAIN, k=4, order=2, numbers=NUMBERS)


def list_loci(codes: Codes, length: int) -> Iterator[list[int]]:
    """What a window would copy at every diagonal of the text, on both strands."""
    text = [*([NONE] * length), *codes.tolist(), *([NONE] * length)]
    for start in range(1, len(text) - length):
        there = text[start : start + length]
        yield there
        yield [3 - c if c < 4 else c for c in there[::-1]]


def spell_text() -> Codes:
    return np.concatenate([np.append(c, NONE) for _, _, c in TRAIN]).astype(np.uint8)


class Runs:
    """All 2^L ways to be in the background (0) or copying (1), and what each is made of."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.strings = np.array(list(itertools.product((0, 1), repeat=length)))
        runs = list(itertools.combinations(range(length + 1), 2))
        self.runs = {run: i for i, run in enumerate(runs)}
        self.made_of = np.zeros((len(self.strings), len(runs)))
        self.fixed = np.zeros(len(self.strings))
        for row, string in enumerate(self.strings.tolist()):
            at = 0
            weight = np.log(NUMBERS.end / (NUMBERS.start + NUMBERS.end)) if not string[0] else 0.0
            for copying, places in itertools.groupby(string):
                end = at + len(list(places))
                if copying:
                    self.made_of[row, self.runs[at, end]] += 1
                    weight += np.log(NUMBERS.end) if end < length else 0.0
                else:
                    weight += (end - at - 1) * np.log(1 - NUMBERS.start)
                at = end
            self.fixed[row] = weight

    def sum_paths(
        self, emissions: np.ndarray, rates: np.ndarray, at: np.ndarray, factors: np.ndarray
    ) -> np.ndarray:
        """(1 + n, strings), the weight of every string; `emissions` (states, L).

        Row 1 + j has the emissions at place `at[j]` times `factors[j]` (states,).
        """
        made = np.zeros((len(self.runs), len(rates)))
        for a in range(self.length):
            grown = rates if a else rates / (NUMBERS.start + NUMBERS.end)
            for b in range(a + 1, self.length + 1):
                grown = grown * emissions[:, b - 1]
                made[self.runs[a, b]] = (1 - NUMBERS.end) ** (b - a - 1) * grown
        ends = np.array([*self.runs])
        within = (ends[:, :1] <= at) & (at < ends[:, 1:])  # (runs, n)
        plain = made.sum(1)[:, None]
        chances = np.hstack([plain, np.where(within, made @ factors.T, plain)])
        return np.asarray(np.exp(self.fixed + np.log(chances.T) @ self.made_of.T))


def enumerate_window(codes: Codes, evidence: np.ndarray, runs: Runs) -> tuple[np.ndarray, ...]:
    """w0, copy and Z by summing over all strings, at hidden places with each base put there."""
    loci = np.array(list(list_loci(spell_text(), len(codes))))
    n = 2 * sum(len(c) for _, _, c in TRAIN)
    eps = np.repeat(NUMBERS.divergence, len(loci))[:, None]
    rates = NUMBERS.start * np.repeat(NUMBERS.share, len(loci)) / n
    loci = np.tile(loci, (len(NUMBERS.share), 1))
    emissions = np.where(loci == codes, 1 - eps, eps / 3) / evidence
    emissions = np.where(codes == NONE, 1.0, emissions)
    emissions[loci == NONE] = 0
    put, n = list(itertools.product(np.flatnonzero(codes == NONE), range(4))), len(codes)
    says = [np.where(loci[:, i] == base, 1 - eps[:, 0], eps[:, 0] / 3) for i, base in put]
    at = np.array([i for i, _ in put], np.int64)
    factors = np.array(says).reshape(len(put), len(loci))
    weights, *changed = runs.sum_paths(emissions, rates, at, factors)
    w0, copy = weights @ (runs.strings == 0), np.zeros((n, 4))
    for (i, base), found in zip(put, changed, strict=True):
        copy[i, base] = found @ (runs.strings[:, i] == 1)
    return w0 / weights.sum(), copy / weights.sum(), weights.sum()


@pytest.fixture(scope="module")
def runs():
    return Runs(LENGTH)


@pytest.mark.parametrize(
    "pattern", [0, 2**LENGTH - 1, 0b101010101010, 0b000000111111, 0b110011001100, 1]
)
def test_with_all_diagonals_it_is_the_sum_over_all_paths(memory, runs, pattern):
    check_patterns(memory, runs, [pattern])


@pytest.mark.slow
def test_the_sum_over_all_paths_at_many_visible_patterns(memory, runs):
    """Each eleventh of the 4,096 of a window of 12 bases."""
    check_patterns(memory, runs, range(3, 2**LENGTH, 11))


def check_patterns(memory: Memory, runs: Runs, patterns: Sequence[int]) -> None:
    clean = TRAIN[0][2][30 : 30 + LENGTH].copy()
    clean[5] = (clean[5] + 1) % 4
    shown = (np.array(patterns)[:, None] >> np.arange(LENGTH)) & 1 == 1
    codes = np.where(shown, clean, NONE).astype(np.uint8)
    found, windows = memory.recall(codes, every=True), memory.prepare(codes)
    np.testing.assert_allclose(found.background + found.copy.sum(-1), 1, atol=1e-12)
    for row, window in enumerate(windows):
        w0, copy, _ = enumerate_window(codes[row], window.evidence, runs)
        np.testing.assert_allclose(found.background[row], w0, atol=1e-12)
        hidden = ~shown[row]
        np.testing.assert_allclose(found.copy[row][hidden], copy[hidden], atol=1e-12)


@pytest.mark.parametrize("copies", [0.02, 0.3, 1.0])
def test_most_windows_may_copy_nothing(memory, runs, copies):
    """A share of the windows has the chain, the others all their weight on one path: background."""
    clean = TRAIN[0][2][30 : 30 + LENGTH]
    memory = memory.with_numbers(NUMBERS.model_copy(update={"copies": copies}))
    for pattern in (0, 0b101110111011, 2**LENGTH - 1):
        shown = (pattern >> np.arange(LENGTH)) & 1 == 1
        codes = np.where(shown, clean, NONE).astype(np.uint8)
        (window,) = memory.prepare(codes[None])
        w0, copy, total = enumerate_window(codes, window.evidence, runs)
        any_ = copies * total / (copies * total + 1 - copies)
        found = memory.recall(codes[None], every=True)
        np.testing.assert_allclose(found.background[0], 1 - any_ * (1 - w0), atol=1e-12)
        np.testing.assert_allclose(found.copy[0][~shown], any_ * copy[~shown], atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 30))
def test_both_strands_say_the_same(seed, length):
    numbers = NUMBERS.model_copy(update={"shift": 0.1})
    memory = Memory.build(
        [("c", 0, hide(draw_bases(60, seed), 0.05, seed))], k=4, order=2, numbers=numbers
    )
    x = hide(draw_bases(length, seed + 1), 0.4, seed + 2)
    there = memory.recall(x[None], every=True)
    back = memory.recall(turn_codes(x)[None], every=True)
    np.testing.assert_allclose(back.background[0, ::-1], there.background[0], atol=1e-12)
    np.testing.assert_allclose(back.copy[0, ::-1, ::-1], there.copy[0], atol=1e-12)


@pytest.mark.parametrize("x", [[1, 4, 2, 0, 4, 4, 3, 3], [3, 1, 0, 2, 2, 4, 1, 1], [2], [4]])
def test_the_evidence_of_the_chain_is_a_sum_over_the_hidden_bases(x):
    chain, x = Chain(count_words(draw_bases(500, 4), 2)), np.array(x, np.uint8)

    def sum_over(codes: Codes) -> float:
        total = 0.0
        for hidden in itertools.product(range(4), repeat=int((codes == NONE).sum())):
            full = codes.copy()
            full[codes == NONE] = hidden
            for before in itertools.product(range(4), repeat=2):
                all_ = [*before, *full.tolist()]
                p = chain.first[before[0] * 4 + before[1]]
                for i in range(2, len(all_)):
                    p *= chain.next[all_[i - 2] * 4 + all_[i - 1], all_[i]]
                total += p
        return total

    def chances(codes: Codes) -> np.ndarray:
        """p(x_i | visible bases before i)."""
        parts = [sum_over(codes[:n]) for n in range(len(codes) + 1)]
        return np.array(parts[1:]) / np.array(parts[:-1])

    expected = np.sqrt(chances(x) * chances(turn_codes(x))[::-1])
    np.testing.assert_allclose(measure_evidence(x[None], chain)[0], expected, rtol=1e-10)
    turned = measure_evidence(turn_codes(x)[None], chain)[0]
    np.testing.assert_array_equal(turned[::-1], measure_evidence(x[None], chain)[0])


@pytest.mark.parametrize("length", [1, 4, 5, 6, 7, 33, 200])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 1.0])
def test_contexts_that_are_looked_up_give_the_bits_of_the_loop_over_places(length, share):
    chain, x = Chain(count_words(draw_bases(5000, 4), 4)), hide(draw_bases(length, 5), share, 6)

    def walk(codes: Codes) -> np.ndarray:
        states, found = chain.first, []
        for base in codes:
            joint = states[:, None] * chain.next
            found.append(joint[:, base].sum() if base < NONE else 1.0)
            if base < NONE:
                joint[:, np.arange(4) != base] = 0
            joint /= found[-1] if base < NONE else joint.sum()
            states = joint.reshape(4, -1, 4).sum(0).reshape(-1)
        return np.array(found)

    expected = np.sqrt(walk(x) * walk(turn_codes(x))[::-1])
    np.testing.assert_array_equal(measure_evidence(x[None], chain)[0], expected)


def test_the_odds_of_a_diagonal_are_a_sum_over_its_segments(memory):
    numbers = MemoryNumbers(start=1e-3, end=0.01, shift=0.02, divergence=(0.01,), share=(1.0,))
    window = memory.prepare(TRAIN[0][2][20:44][None])[0]
    diagonal = (np.array([20]), np.array([], np.int64))
    odds = weigh_diagonals(memory.text, window, diagonal, numbers)
    total = sum(
        float(np.prod(0.99 / window.evidence[a:b])) * 0.97 ** (b - a - 1)
        for a, b in itertools.combinations(range(25), 2)
    )
    assert odds[0] == pytest.approx(np.log(1e-3 * 0.01 / window.n_loci * total), rel=1e-9)


GENOME = draw_bases(3000, 1)
UNIFORM = np.full((6, 200, 4), 0.25)


def test_the_fit_finds_how_faithful_the_copies_are():
    numbers = MemoryNumbers(divergence=(0.4,), share=(1.0,), start=0.01)
    memory = Memory.build([("c", 0, GENOME)], numbers=numbers)
    clean = np.stack([mutate(GENOME[a : a + 200], 0.06, a) for a in range(0, 2400, 400)])
    windows = np.stack([hide(x, 0.4, i) for i, x in enumerate(clean)])
    heard: list[str] = []
    found = fit_numbers(memory, windows, clean, UNIFORM, tell=heard.append)
    assert found.alone == pytest.approx(2)
    assert found.alone > found.before > found.after
    assert 0.03 < found.numbers.divergence[0] < 0.12
    assert heard
    mixed = memory.with_numbers(found.numbers).recall(windows)
    chances = mixed.background[..., None] * UNIFORM + mixed.copy
    assert measure_bits(chances, windows, clean).mean() == pytest.approx(found.after, abs=1e-9)


def test_bits_are_of_hidden_bases():
    clean, chances = np.array([[0, 1, 2, NONE]], np.uint8), np.zeros((1, 4, 4))
    chances[0, 0, 0], chances[0, 1, 1] = 0.5, 0.125
    windows = np.array([[NONE, NONE, 2, NONE]], np.uint8)
    assert measure_bits(chances, windows, clean) == pytest.approx([2.0])


def test_windows_without_a_hidden_base_are_refused():
    memory = Memory.build([("c", 0, GENOME)])
    clean = GENOME[:200][None]
    with pytest.raises(DataError, match="no base is masked"):
        fit_numbers(memory, clean, clean, UNIFORM[:1])


def test_windows_count_as_much_as_they_weigh():
    memory = Memory.build([("c", 0, GENOME)])
    clean = np.stack([mutate(GENOME[a : a + 200], 0.02 + a / 4000, a) for a in (0, 400, 800)])
    windows = np.stack([hide(x, 0.4, i) for i, x in enumerate(clean)])
    said, rounds = UNIFORM[:3], ((2.0, 0.5),)
    one = fit_numbers(memory, windows[:1], clean[:1], said[:1], rounds=rounds)
    same = fit_numbers(memory, windows, clean, said, rounds=rounds, weights=np.array([2.0, 0, 0]))
    assert same.numbers == one.numbers
    assert same.after == pytest.approx(one.after, abs=1e-12)
    assert fit_numbers(memory, windows, clean, said, rounds=rounds).numbers != one.numbers
