"""Rates of columns against closed forms, sums over inner bases, and simulated columns."""

import itertools

import numpy as np
import pytest
from scipy.stats import chi2

from genodiff.memory.column_rates import (
    CAP,
    ColumnTest,
    NeutralRate,
    call_columns,
    estimate_neutral,
    measure_length,
    weigh_at_rates,
)
from genodiff.memory.columns import start_numbers
from genodiff.memory.text import NONE
from genodiff.memory.tree import Tree, exchange, share_bases

PAIR = Tree((-1, 0), (0.0, 0.2))
TREE = Tree((-1, 4, 5, 5, 0, 4), (0.0, 0.1, 0.2, 0.3, 0.05, 0.15))
NEUTRAL = NeutralRate(2.0, 3.0, "sites", 1.0)


def make_test(tree: Tree, gc: float = 0.4) -> ColumnTest:
    return ColumnTest(start_numbers(tree, gc), NEUTRAL)


def columns(*rows: tuple[int, ...]) -> np.ndarray:
    return np.array(rows, np.uint8)


def test_with_one_genome_the_same_base_rejects_all_substitutions_and_another_none():
    found = make_test(PAIR).score(columns((0, 0), (0, 1), (2, 2)))
    length = NEUTRAL.rate * 0.2
    np.testing.assert_allclose(found.length, length)
    np.testing.assert_allclose(found.rs, [length, (1 - CAP) * length, length])
    assert (np.sign(found.phylop) == [1, -1, 1]).all()


def test_a_position_where_nothing_lies_has_no_value():
    found = make_test(TREE).score(columns((0, 4, 4, 4), (4, 0, 0, 0), (0, 4, 0, 4)))
    for one in found:
        assert np.isnan(one[:2]).all()
        assert not np.isnan(one[2])


@pytest.mark.parametrize(
    ("present", "length"),
    [((1, 0, 0), 0.15), ((0, 1, 1), 0.7), ((1, 1, 0), 0.5), ((1, 1, 1), 0.8), ((0, 0, 0), 0.0)],
)
def test_the_length_is_that_of_the_branches_to_those_present(present, length):
    assert measure_length(TREE, np.array(present, bool)) == pytest.approx(length)


@pytest.mark.parametrize("column", [(0, 0, 2, 1), (3, 3, 3, 3), (1, 4, 1, 0)])
def test_the_likelihood_is_the_sum_over_inner_bases(column):
    numbers, rate = start_numbers(TREE, 0.4), 1.7
    p = exchange(rate * np.array(TREE.length), np.full(6, NEUTRAL.kappa), 0.4)
    total = 0.0
    for four, five in itertools.product(range(4), repeat=2):
        weight = p[4, column[0], four] * p[5, four, five]
        for leaf, above in ((1, four), (2, five), (3, five)):
            if column[leaf] < NONE:
                weight *= p[leaf, above, column[leaf]] / share_bases(0.4)[column[leaf]]
        total += weight
    found = weigh_at_rates(columns(column), numbers, np.array([rate]), NEUTRAL.kappa)
    assert found[0, 0] == pytest.approx(np.log(total))


def test_phylop_is_the_likelihood_ratio_test_of_rate_1():
    test, some = make_test(TREE), columns((0, 0, 0, 0), (0, 1, 2, 3), (2, 2, 0, 0), (1, 1, 3, 4))
    rates = np.concatenate([[1e-9], np.geomspace(0.01, 30, 4000)]) * NEUTRAL.rate
    log = weigh_at_rates(some, test.numbers, rates, NEUTRAL.kappa)
    one = weigh_at_rates(some, test.numbers, np.array([NEUTRAL.rate]), NEUTRAL.kappa)[0]
    slower = rates[log.argmax(0)] < NEUTRAL.rate
    expected = -np.log10(chi2.sf(2 * (log.max(0) - one), 1)) * np.where(slower, 1, -1)
    np.testing.assert_allclose(test.score(some).phylop, expected, atol=2e-3)


def test_a_score_depends_on_the_column_alone():
    some = np.random.default_rng(1).integers(0, 5, (300, 4)).astype(np.uint8)
    whole, test = make_test(TREE).score(some), make_test(TREE)
    for i in range(0, 300, 7):
        for name, value in test.score(some[i : i + 1])._asdict().items():
            np.testing.assert_array_equal(value, getattr(whole, name)[i : i + 1])


def draw(rate: float, kappa: float, n: int, seed: int, absent: float = 0.1) -> np.ndarray:
    """Columns of TREE, all branches times `rate`."""
    rng = np.random.default_rng(seed)
    p = exchange(rate * np.array(TREE.length), np.full(6, kappa), 0.4)
    target = rng.choice(4, n, p=share_bases(0.4))

    def pass_on(base: np.ndarray, node: int) -> np.ndarray:
        return (rng.random((n, 1)) > p[node][base].cumsum(1)).sum(1).clip(0, 3)

    four = pass_on(target, 4)
    five = pass_on(four, 5)
    leaves = (pass_on(four, 1), pass_on(five, 2), pass_on(five, 3))
    drawn = np.stack([target, *leaves], 1).astype(np.uint8)
    drawn[rng.random(drawn.shape) < absent] = NONE
    return drawn


@pytest.mark.parametrize(("rate", "kappa"), [(1.6, 5.0), (0.2, 2.0), (5.0, 4.0)])
def test_the_neutral_rate_of_simulated_columns_is_found(rate, kappa):
    drawn = draw(rate, kappa, 20_000, 2)
    found = estimate_neutral(drawn, np.ones(len(drawn)), start_numbers(TREE, 0.4), "simulated")
    assert found.rate == pytest.approx(rate, rel=0.07)
    assert found.kappa == pytest.approx(kappa, rel=0.1)


def test_of_two_kinds_of_columns_the_rate_is_that_of_the_free_ones():
    """As of third codon positions: half may become any base, half the other of their kind."""
    parts = [draw(1.5, 4.0, 30_000, 3, 0), draw(0.9, 40.0, 30_000, 4, 0)]
    drawn, numbers = np.concatenate(parts), start_numbers(TREE, 0.4)
    found = estimate_neutral(drawn, np.ones(len(drawn)), numbers, "simulated", kinds=2)
    plain = estimate_neutral(drawn, np.ones(len(drawn)), numbers, "simulated")
    assert found.rate == pytest.approx(1.5, rel=0.12)
    assert found.kappa < 7 < plain.kappa
    assert plain.rate < found.rate


def test_columns_at_rate_1_are_neither_conserved_nor_accelerated():
    numbers = start_numbers(TREE, 0.4)
    test = ColumnTest(numbers, NeutralRate(1.0, 3.0, "simulated", 1.0))
    scores = {rate: test.score(draw(rate, 3.0, 30_000, 5, 0)) for rate in (0.3, 1.0, 2.0)}
    p = 10 ** -np.abs(scores[1.0].phylop)
    assert (p < 0.05).mean() <= 0.06
    assert (p < 0.01).mean() <= 0.012
    assert abs(scores[1.0].phylop.mean()) < 0.15
    slow, neutral, fast = (one.rs.mean() for one in scores.values())
    assert slow > 0.35 > neutral > fast
    # A rate of 0 to 3 is estimated from four bases: on average it is above 1 where the truth is 1.
    assert -0.3 < neutral / scores[1.0].length.mean() < 0


def test_a_base_is_called_where_it_is_likelier_than_not():
    over = np.zeros((2, 3, 4))
    over[0, 0, 2], over[0, 1, 1], over[1, 2] = 0.9, 0.4, 0.2
    called = call_columns(over, np.array([0, 4, 3], np.uint8))
    assert called.tolist() == [[0, 2, 4], [4, 4, 4], [3, 4, 0]]
