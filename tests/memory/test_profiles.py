"""Mutation-selection columns, against worlds small enough to be summed by hand."""

from itertools import product

import numpy as np
import pytest

from genodiff.memory.profiles import (
    HEADS,
    ProfileColumns,
    ProfileScores,
    fit_profiles,
    fix,
    list_classes,
    measure_near_kappa,
)
from genodiff.memory.tree import Tree, share_bases
from genodiff.memory.votes import ProfileNumbers, score_heads

TREE = Tree((-1, 3, 3, 0), (0.0, 0.1, 0.4, 0.2))  # the target above an inner node of two genomes
GC, KAPPA = 0.4, 5.0


def exponentiate(rates: np.ndarray) -> np.ndarray:
    """exp of a matrix by its series, after halving."""
    small, out, term = rates / 2**20, np.eye(4), np.eye(4)
    for n in range(1, 8):
        term = term @ small / n
        out = out + term
    for _ in range(20):
        out = out @ out
    return out


def spell_rates(rate: float, fitness: np.ndarray, kappa: float) -> np.ndarray:
    """q(a -> b) as the module's docstring has it."""
    share, mutation = share_bases(GC), np.zeros((4, 4))
    for a, b in product(range(4), repeat=2):
        if a != b:
            mutation[a, b] = share[b] * (kappa if (a ^ b) == 2 else 1)
    mutation /= share @ mutation.sum(1)
    out = np.zeros((4, 4))
    for a, b in product(range(4), repeat=2):
        if a != b:
            s = fitness[b] - fitness[a]
            out[a, b] = rate * mutation[a, b] * (s / (1 - np.exp(-s)) if s else 1)
    return out - np.diag(out.sum(1))


def weigh_slowly(column: tuple[int, int], kappa: float) -> np.ndarray:
    """(C, 4): pi(b) / p(b) P(column | b), summed over the inner node; a relative's base in units
    of the bases' shares."""
    rates, fitness, _ = list_classes()
    share, out = share_bases(GC), np.zeros((len(rates), 4))
    for c in range(len(rates)):
        flow = spell_rates(rates[c], fitness[c], kappa)
        steps = [exponentiate(flow * length) for length in TREE.length]
        profile = share * np.exp(fitness[c])
        profile /= profile.sum()
        for b, inner in product(range(4), repeat=2):
            leaves = steps[1][inner, column[0]] * steps[2][inner, column[1]]
            out[c, b] += steps[3][b, inner] * leaves * profile[b] / share[b]
    return out / share[column[0]] / share[column[1]]


def spread(columns: list[tuple[int, int]]) -> np.ndarray:
    return np.eye(4)[np.array(columns).T]


def make_world(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, n)
    columns = np.where(rng.random((2, n)) < 0.8, codes, rng.integers(0, 4, (2, n)))
    return np.eye(4)[columns], codes.astype(np.uint8), rng.random(n) * 0.3


def fit_world(over: np.ndarray, codes: np.ndarray) -> ProfileNumbers:
    far = np.full((3, 3), 0.5) - 0.5 * np.eye(3)
    return fit_profiles(over[:, None], codes[None], far, TREE, GC)


def test_columns_are_the_sums_over_all_histories() -> None:
    every = list(product(range(4), repeat=2))
    found = ProfileColumns(TREE, GC, KAPPA).read(spread(every))
    expected = np.array([weigh_slowly(column, KAPPA) for column in every[::5]])
    np.testing.assert_allclose(found[::5], expected, rtol=1e-6, atol=1e-9)
    share = share_bases(GC)
    chance = found * [[[share[a] * share[b]]] for a, b in every] * share
    np.testing.assert_allclose(chance.sum((0, 2)), 1)  # of each class, over all columns and bases


def test_the_score_is_the_log_ratio_of_the_mixtures() -> None:
    over, codes, _ = make_world(400, 1)
    numbers = fit_world(over, codes)
    column, z = (0, 2), 3
    at = np.array([numbers.edges[z] - 1e-9])
    found = ProfileScores(TREE, GC, numbers).score(spread([column]), np.array([0]), at)[0]
    mixed = np.array(numbers.weights[z]) @ weigh_slowly(column, numbers.kappa)
    heads = HEADS / 2 * score_heads(spread([column]), np.array([0]), at)[0]
    np.testing.assert_allclose(found, np.log(mixed / mixed[0]) + heads, rtol=1e-6, atol=1e-9)


def test_both_strands_have_the_same_scores() -> None:
    over, codes, change = make_world(600, 2)
    scores = ProfileScores(TREE, GC, fit_world(over, codes))
    here = scores.score(over[:, :50], codes[:50], change[:50])
    there = scores.score(over[:, :50, ::-1], 3 - codes[:50], change[:50])
    np.testing.assert_allclose(here, there[:, ::-1], atol=1e-9)


def test_weights_sum_to_one_and_slow_stretches_have_slower_classes() -> None:
    rng = np.random.default_rng(3)
    quick = np.arange(4000) < 2000
    codes = rng.integers(0, 4, 4000)
    same = rng.random((2, 4000)) < np.where(quick, 0.5, 0.97)
    over = np.eye(4)[np.where(same, codes, rng.integers(0, 4, (2, 4000)))]
    numbers = fit_world(over, codes.astype(np.uint8))
    weights, rates = np.array(numbers.weights), list_classes()[0]
    np.testing.assert_allclose(weights.sum(1), 1)
    assert np.log(rates) @ weights[-1] > np.log(rates) @ weights[0] + 0.5
    scores = ProfileScores(TREE, GC, numbers)
    alike = spread([(0, 0), (0, 0)])
    slow, fast = scores.weigh(alike, np.array([0.01, 0.5]))
    assert (fast[1:] - fast[0] > slow[1:] - slow[0]).all()


def test_a_base_that_relatives_have_is_tolerated_and_silent_relatives_leave_the_prior() -> None:
    over, codes, _ = make_world(600, 4)
    scores = ProfileScores(TREE, GC, fit_world(over, codes))
    seen = scores.weigh(spread([(0, 1)]), np.array([0.1]))[0]
    assert seen[1] > max(seen[2], seen[3])
    none = scores.weigh(np.zeros((2, 1, 4)), np.array([0.1]))[0]
    np.testing.assert_allclose(none, none[::-1], atol=1e-9)


def test_fixation_of_a_neutral_mutation_is_one() -> None:
    np.testing.assert_allclose(fix(np.array([0.0, 1e-6, -1e-6])), 1, rtol=1e-5)
    assert fix(np.array([3.0]))[0] / fix(np.array([-3.0]))[0] == pytest.approx(np.exp(3))


def test_kappa_is_counted_between_the_nearest() -> None:
    codes = np.zeros(40, np.uint8)
    near, far = np.zeros(40, int), np.zeros(40, int)
    near[:6], near[6] = 2, 1  # six transitions and a transversion
    far[:30] = 1
    over = np.eye(4)[np.stack([near, far])]
    distances = np.array([[0, 0.03, 0.6], [0.03, 0, 0.6], [0.6, 0.6, 0]])
    assert measure_near_kappa(over, codes, distances) == pytest.approx(2 * 7 / 3)
    apart = np.array([[0, 0.6, 0.6], [0.6, 0, 0.03], [0.6, 0.03, 0]])
    both = np.eye(4)[np.stack([np.full(40, 1), np.where(np.arange(40) < 4, 3, 1)])]
    assert measure_near_kappa(both, codes, apart) == pytest.approx(2 * 5 / 2)


def test_few_positions_of_a_bin_leave_its_weights_near_those_of_the_whole() -> None:
    over, codes, _ = make_world(80, 5)  # ten a bin
    weights = np.array(fit_world(over, codes).weights)
    assert np.abs(weights - weights.mean(0)).sum(1).max() < 0.3


def test_many_positions_are_scored_as_one_by_one() -> None:
    over, codes, change = make_world(700, 6)
    scores = ProfileScores(TREE, GC, fit_world(over, codes))
    every, at = scores.score(over, codes, change), [3, 600]
    for i in at:
        one = scores.score(over[:, [i]], codes[[i]], change[[i]])
        np.testing.assert_allclose(every[i], one[0], atol=1e-9)
