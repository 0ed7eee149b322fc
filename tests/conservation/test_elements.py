"""Conserved elements: segments and lods against their definitions, and the false discovery rate."""

import numpy as np
import pytest

from genodiff.conservation.elements import (
    ColumnStretch,
    estimate_fdr,
    find_elements,
    find_segments,
    find_segments_slowly,
    format_bed,
    permute_scores,
    score_columns,
)
from genodiff.memory.column_rates import (
    AROUND,
    BLOCK,
    ColumnClasses,
    find_slow_classes,
    list_unique,
    observe_columns,
)
from genodiff.memory.columns import ColumnNumbers, start_numbers
from genodiff.memory.tree import Tree, exchange, share_bases

TREE = Tree((-1, 4, 4, 0, 0), (0.0, 0.15, 0.2, 0.3, 0.05))
RATE = (0.05, 0.3, 1.0, 3.0)


@pytest.mark.parametrize("n", [0, 1, 2, 60])
def test_segments_are_those_of_the_definition(n):
    rng = np.random.default_rng(n)
    for _ in range(40):
        scores = rng.normal(-0.2, 1, n)
        scores[rng.random(n) < 0.05] = np.nan
        found, slowly = (f(scores, 2.0) for f in (find_segments, find_segments_slowly))
        for one, other in zip(found, slowly, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)


def test_no_segment_holds_a_position_without_a_value():
    scores = np.array([1.0, 1, np.nan, 1, 1])
    assert find_segments(scores, 9.0).end.tolist() == [2, 5]


def make_numbers() -> ColumnNumbers:
    """Genes in which first and second codon positions are slow, slow plain stretches, and fast."""
    numbers = start_numbers(TREE, 0.4, plain=2, coding=1)
    return numbers.model_copy(update={
        "rate": RATE, "kappa": (3.0,) * 4,
        "plain": ((0.9, 0.1, 0.0, 0.0), (0.0, 0.0, 0.5, 0.5)),
        "coding": (((0.8, 0.2, 0.0, 0.0), (0.9, 0.1, 0.0, 0.0), (0.0, 0.0, 0.6, 0.4)),),
        "share": (0.05, 0.75, 0.2), "leave": (0.01, 0.005, 0.005),
    })  # fmt: skip


def draw_columns(kinds: np.ndarray, seed: int) -> np.ndarray:
    """(n, 4): columns of the tree, the third genome being absent from every third thousand.

    `kinds` (n,): 0 plain and fast, 1 plain and slow, 2 of a gene.
    """
    numbers, rng = make_numbers(), np.random.default_rng(seed)
    phase = np.arange(len(kinds)) % 3
    mixtures = np.array([numbers.plain[1], numbers.plain[0], *numbers.coding[0]])
    which = np.where(kinds < 2, kinds, 2 + phase)
    rate = (rng.random((len(kinds), 1)) > mixtures.cumsum(1)[which][:, :-1]).sum(1)
    length = np.array(RATE)[:, None] * np.array(TREE.length)
    chances = exchange(length, np.full(length.shape, 3.0), 0.4)
    bases = np.zeros((len(TREE.parent), len(kinds)), np.int64)
    bases[0] = rng.choice(4, len(kinds), p=share_bases(0.4))
    for node in reversed(TREE.order_nodes()[:-1]):
        above = bases[TREE.parent[node]]
        u, p = rng.random(len(kinds)), chances[rate, node, above].cumsum(1)
        bases[node] = np.minimum((u[:, None] > p).sum(1), 3)
    out = bases[:4].T.astype(np.uint8)
    out[np.arange(len(out)) // 1000 % 3 == 0, 3] = 4
    return out


def make_row(kinds: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray, ColumnClasses]:
    columns, ids = list_unique(draw_columns(kinds, seed))
    return ids.astype(np.int32), columns, ColumnClasses(make_numbers(), 1.8, columns)


def plant(n: int, every: int = 2000, bases: int = 210) -> np.ndarray:
    kinds = np.zeros(n, np.int64)
    for number, start in enumerate(range(every // 2, n, every)):
        kinds[start : start + bases] = 1 + number % 2
    return kinds


def test_lods_are_those_of_the_definition_at_every_edge():
    ids, _, classes = make_row(plant(2 * BLOCK + 700), 1)
    ids[[0, 40, 41, BLOCK - 1, BLOCK + AROUND, len(ids) - 1]] = -1
    fast, slow = classes.compare(ids), classes.compare_slowly(ids)
    np.testing.assert_array_equal(np.isnan(fast), ids < 0)
    np.testing.assert_allclose(fast, slow, atol=1e-9)


def test_a_column_alone_is_weighed_by_the_shares_of_the_classes():
    columns = draw_columns(np.zeros(40, np.int64), 2)
    numbers, classes = make_numbers(), ColumnClasses(make_numbers(), 1.8, columns)
    seen = observe_columns(columns, numbers)
    for i in range(40):
        (found,) = classes.compare(np.array([i], np.int32))
        slow = 0.05 * seen[i] @ numbers.plain[0]
        slow += 0.2 / 3 * sum(seen[i] @ np.array(one) for one in numbers.coding[0])
        assert found == pytest.approx(np.log(slow / 0.25) - np.log(seen[i] @ numbers.plain[1]))


def test_slow_classes_are_told_by_their_mean_rate_over_a_codon():
    numbers = make_numbers()
    assert find_slow_classes(numbers, 1.8).tolist() == [True, False, True]
    assert find_slow_classes(numbers, 0.5).tolist() == [True, False, False]
    assert find_slow_classes(numbers, 0.01).tolist() == [True, False, False]
    assert find_slow_classes(numbers, 99).tolist() == [True, False, True]


def test_third_codon_positions_do_not_end_an_element():
    kinds = np.zeros(9000, np.int64)
    kinds[3000:3900] = 2
    ids, columns, classes = make_row(kinds, 3)
    stretch = ColumnStretch("chr1", 100, ids)
    found = find_elements([stretch], columns, classes, fdr=0.05)
    longest = max(found, key=lambda one: one.lod)
    assert abs(longest.start - 3100) < 40
    assert abs(longest.end - 4000) < 40
    assert longest.q < 0.02
    rows = format_bed(found).splitlines()
    assert rows[0].startswith("#chrom")
    assert all(len(row.split("\t")) == 8 for row in rows)


def test_no_element_lies_where_nothing_is_present_or_runs_into_another_stretch():
    kinds = np.ones(600, np.int64)
    columns, ids = list_unique(np.concatenate([draw_columns(kinds, 4), [[0, 4, 4, 4]]]))
    nothing, ids = ids[-1], ids[:-1].astype(np.int32)
    classes = ColumnClasses(make_numbers(), 1.8, columns)
    ids[290:310] = nothing
    parts = [ColumnStretch("a", 0, ids), ColumnStretch("b", 0, ids)]
    found = find_elements(parts, columns, classes, fdr=1)
    assert {one.contig for one in found} == {"a", "b"}
    assert all(one.end <= 290 or one.start >= 310 for one in found)
    assert find_elements([], columns, classes, fdr=0.05) == []


@pytest.mark.slow
def test_the_false_discovery_rate_holds_where_half_of_the_columns_are_shuffled():
    """Elements in the half whose columns were permuted beforehand are false."""
    every = []
    for seed in (5, 6, 7):
        real, null = draw_columns(plant(120_000), seed), draw_columns(plant(120_000), seed + 50)
        rng = np.random.default_rng(seed)
        for pattern in (0, 1):
            at = np.flatnonzero((null[:, 3] == 4) == pattern)
            null[at] = null[rng.permutation(at)]
        columns, ids = list_unique(np.concatenate([real, null]))
        rows = np.split(ids.astype(np.int32), 2)
        parts = [ColumnStretch(name, 0, row) for name, row in zip("rn", rows, strict=True)]
        classes = ColumnClasses(make_numbers(), 1.8, columns)
        every += find_elements(parts, columns, classes, fdr=0.2)
    for nominal in (0.05, 0.2):
        called = [one for one in every if one.q <= nominal]
        assert len(called) > 60
        assert sum(one.contig == "n" for one in called) <= 1.2 * nominal * len(called) + 1


def test_columns_move_only_among_positions_at_which_the_same_genomes_are_present():
    columns = np.array([[0, 0, 0, 0], [1, 1, 1, 4], [2, 4, 4, 4]], np.uint8)
    ids = np.random.default_rng(8).integers(-1, 3, 900).astype(np.int32)
    classes = ColumnClasses(make_numbers(), 1.8, columns)
    scores = find_segments(score_columns(ids, columns, classes), 4.0).score
    for one in permute_scores(ids, columns, classes, 5):
        np.testing.assert_array_equal(one, scores)


def test_equal_scores_have_one_rate():
    q = estimate_fdr(np.array([3.0, 1, 3, 1]), [np.array([1.0, 1.0])])
    assert q[0] == q[2]
    assert q[1] == q[3]
    assert q[0] < q[1]
