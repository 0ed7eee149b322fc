"""The tree and the chain of classes against sums over everything that is not seen."""

import itertools

import numpy as np
import pytest
from scipy.linalg import expm

from genodiff.kernels import library
from genodiff.memory.columns import (
    ColumnNumbers,
    combine,
    combine_slowly,
    improve,
    infer_rates,
    infer_rates_slowly,
    list_states,
    observe,
    read_columns,
    run_chain,
    start_numbers,
)
from genodiff.memory.text import NONE
from genodiff.memory.tree import Tree, exchange, format_newick, join_neighbours, weigh_columns

TREE = Tree((-1, 4, 5, 5, 0, 4), (0.0, 0.1, 0.2, 0.3, 0.05, 0.15))
GC = 0.4
PI = np.array([0.3, 0.2, 0.2, 0.3])


def make_numbers(tree: Tree, seed: int = 0) -> ColumnNumbers:
    numbers = start_numbers(tree, GC, plain=1, coding=1)
    rng = np.random.default_rng(seed)
    return numbers.model_copy(
        update={
            "rate": (0.3, 2.0), "kappa": (1.0, 6.0), "plain": ((0.4, 0.6),),
            "coding": (tuple(map(tuple, rng.dirichlet((1, 1), 3).tolist())),),
            "share": (0.3, 0.7), "leave": (0.2, 0.1),
        }
    )  # fmt: skip


def draw_over(g: int, length: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(5), (g, 1, length))[..., :4]


def test_exchanges_are_the_exponential_of_their_rates():
    kappa, t = 5.0, 0.7
    rates = np.array([[kappa if i ^ j == 2 else 1.0 for j in range(4)] for i in range(4)]) * PI
    np.fill_diagonal(rates, 0)
    rates -= np.diag(rates.sum(1))
    rates /= -(PI * np.diag(rates)).sum()
    found = exchange(np.array([t]), np.array([kappa]), GC)[0]
    np.testing.assert_allclose(found, expm(rates * t), atol=1e-12)


def test_a_column_is_the_sum_over_inner_bases():
    rng = np.random.default_rng(1)
    leaves = rng.random((3, 2, 4))
    chances = exchange(np.array(TREE.length)[None], np.full((1, 6), 3.0), GC)
    expected = np.zeros((2, 4))
    for b, four, five in itertools.product(range(4), repeat=3):
        p = chances[0]
        weight = p[4, b, four] * p[5, four, five]
        for leaf, above in ((1, four), (2, five), (3, five)):
            weight = weight * (leaves[leaf - 1] @ p[leaf, above])
        expected[:, b] += weight
    np.testing.assert_allclose(weigh_columns(TREE, leaves, chances)[0], expected, atol=1e-12)


def test_neighbours_are_joined_to_the_tree_that_made_the_distances():
    def climb(tree: Tree, node: int) -> list[int]:
        above = tree.parent[node]
        return [node, *climb(tree, above)] if above >= 0 else [node]

    def measure_paths(tree: Tree) -> np.ndarray:
        paths = np.zeros((4, 4))
        for i, j in itertools.combinations(range(4), 2):
            apart = set(climb(tree, i)) ^ set(climb(tree, j))
            paths[i, j] = paths[j, i] = sum(tree.length[node] for node in apart)
        return paths

    paths = measure_paths(TREE)
    tree = join_neighbours(paths)
    assert tree.relatives == 3
    np.testing.assert_allclose(measure_paths(tree), paths, atol=1e-12)


@pytest.mark.few(2)
@pytest.mark.parametrize("g", [1, 2, 3])
@pytest.mark.parametrize("codes", [[0, NONE, 2, NONE], [NONE] * 4, [1, 1, 3, 0]])
def test_it_is_the_sum_over_all_states_and_bases(g, codes):
    tree = {1: Tree((-1, 0), (0, 0.2)), 2: Tree((-1, 3, 3, 0), (0, 0.1, 0.3, 0.1)), 3: TREE}[g]
    numbers = make_numbers(tree)
    over, x = draw_over(g, 4, g), np.array([codes], np.uint8)
    prior = np.random.default_rng(5).dirichlet(np.ones(4), (1, 4))
    states = list_states(numbers)
    column = read_columns(over.reshape(g, -1, 4), numbers)  # (L, J, 4)
    k, rates = len(states.share), 2
    expected = np.zeros((4, 4))
    for place, base in itertools.product(range(4), range(4)):
        total = 0.0
        for path in itertools.product(range(k), repeat=4):
            weight = states.share[path[0]]
            weight *= np.prod([states.steps[a, b] for a, b in itertools.pairwise(path)])
            for i, state in enumerate(path):
                says = 0.0
                for j in range(rates):
                    if i == place:
                        seen = column[i, j, base]
                    elif x[0, i] < NONE:
                        seen = column[i, j, x[0, i]]
                    else:
                        seen = column[i, j] @ prior[0, i]
                    says += states.weights[i % 3, state, j] * seen
                weight *= says
            total += weight
        expected[place, base] = total
    found = combine_slowly(over, x, prior, numbers)[0]
    np.testing.assert_allclose(found, expected / expected.max(-1, keepdims=True), rtol=1e-9)


@pytest.mark.parametrize("codes", [[0, NONE, 2], [1, 1, 3], [NONE] * 3])
def test_posterior_rates_and_states_are_shares_of_the_sum_over_all_paths(codes):
    numbers, over, x = make_numbers(TREE), draw_over(3, 3, 8), np.array([codes], np.uint8)
    states = list_states(numbers)
    column = read_columns(over.reshape(3, -1, 4), numbers)  # (L, J, 4)
    seen = [column[i] @ PI if c == NONE else column[i, :, c] for i, c in enumerate(codes)]
    k = len(states.share)
    rates, own = np.zeros((3, 2)), np.zeros((3, k))
    for path in itertools.product(range(k), repeat=3):
        for drawn in itertools.product(range(2), repeat=3):
            weight = states.share[path[0]] * states.steps[path[0], path[1]]
            weight *= states.steps[path[1], path[2]]
            for i, (state, j) in enumerate(zip(path, drawn, strict=True)):
                weight *= states.weights[i % 3, state, j] * seen[i][j]
            for i in range(3):
                rates[i, drawn[i]] += weight
                own[i, path[i]] += weight
    found = infer_rates_slowly(over, x, numbers)
    np.testing.assert_allclose(found.rates[0], rates / rates.sum(1, keepdims=True), rtol=1e-9)
    np.testing.assert_allclose(found.states[0], own / own.sum(1, keepdims=True), rtol=1e-9)


def test_newick_has_the_paths_between_the_leaves():
    from io import StringIO

    from Bio import Phylo

    names = ["t", "a", "b", "c"]
    read = Phylo.read(StringIO(format_newick(TREE, names, 2.0)), "newick")
    for (one, other), far in {
        ("t", "a"): 0.15, ("t", "b"): 0.4, ("b", "c"): 0.5, ("a", "c"): 0.55
    }.items():  # fmt: skip
        assert read.distance(one, other) == pytest.approx(2 * far)


def test_both_strands_give_the_same():
    numbers, over = make_numbers(TREE), draw_over(3, 50, 1)
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 5, (1, 50)).astype(np.uint8)
    prior = rng.dirichlet(np.ones(4), (1, 50))
    turned = np.where(codes < NONE, 3 - codes, NONE)[:, ::-1].astype(np.uint8)
    there = combine(over, codes, prior, numbers)
    back = combine(over[:, :, ::-1, ::-1], turned, prior[:, ::-1, ::-1], numbers)
    np.testing.assert_allclose(back[:, ::-1, ::-1], there, rtol=1e-9)


def test_relatives_that_say_nothing_change_nothing():
    numbers = make_numbers(TREE)
    codes = np.full((1, 9), NONE, np.uint8)
    prior = np.random.default_rng(3).dirichlet(np.ones(4), (1, 9))
    np.testing.assert_allclose(
        combine(np.zeros((3, 1, 9, 4)), codes, prior, numbers), 1, rtol=1e-12
    )


def test_each_round_of_the_fit_makes_the_windows_likelier():
    numbers = make_numbers(TREE)
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 4, (5, 60)).astype(np.uint8)
    over = np.eye(4)[np.where(rng.random((3, 5, 60)) < 0.8, codes, rng.integers(0, 4, (3, 5, 60)))]
    prior = np.broadcast_to(PI, (5, 60, 4))
    values = []
    for _ in range(6):
        numbers, value = improve(observe(over, codes, prior, numbers), numbers)
        values.append(value)
    assert np.all(np.diff(values) > -1e-4)
    assert values[-1] > values[0]


def test_the_chain_is_in_detailed_balance():
    states = list_states(make_numbers(TREE))
    flow = states.share[:, None] * states.steps
    np.testing.assert_allclose(flow, flow.T, atol=1e-15)
    np.testing.assert_allclose(
        run_chain(np.ones((1, 3, 7)), states.share, states.steps).told[0, 1], states.share
    )


@pytest.mark.parametrize("length", [1, 2, 40])
@pytest.mark.parametrize("g", [1, 3])
def test_in_c_it_is_the_same_and_depends_on_no_other_window(g, length):
    numbers = make_numbers({1: Tree((-1, 0), (0, 0.2)), 3: TREE}[g])
    rng = np.random.default_rng(7)
    over = rng.dirichlet(np.ones(5), (g, 3, length))[..., :4]
    codes = rng.integers(0, 5, (3, length)).astype(np.uint8)
    prior = rng.dirichlet(np.ones(4), (3, length))
    found = combine(over, codes, prior, numbers)
    np.testing.assert_allclose(found, combine_slowly(over, codes, prior, numbers), rtol=1e-9)
    alone = combine(np.ascontiguousarray(over[:, 1:2]), codes[1:2], prior[1:2], numbers)
    if library.is_loaded():
        np.testing.assert_array_equal(alone[0], found[1])
    in_c, slowly = (f(over, codes, numbers) for f in (infer_rates, infer_rates_slowly))
    np.testing.assert_allclose(in_c.rates, slowly.rates, rtol=1e-9)
    np.testing.assert_allclose(in_c.states, slowly.states, rtol=1e-9)
