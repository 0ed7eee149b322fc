"""Conserved elements: segments against their definition, and the false discovery rate."""

import numpy as np
import pytest

from genodiff.conservation.elements import (
    ScoredStretch,
    estimate_fdr,
    find_elements,
    format_bed,
    permute_scores,
)
from genodiff.memory.segments import find_segments, find_segments_slowly


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


def draw_columns(n: int, seed: int, slow: slice = slice(0, 0)) -> ScoredStretch:
    """Conserved columns are worth .25 nats, others −1; conserved ones are denser in `slow`."""
    rng = np.random.default_rng(seed)
    share = np.full(n, 0.55)
    share[slow] = 0.99
    lod = np.where(rng.random(n) < share, 0.25, -1.0).astype(np.float32)
    return ScoredStretch("chr1", 100, lod, rng.integers(0, 2, n))


def test_a_planted_element_is_found_with_its_ends():
    found = find_elements([draw_columns(20_000, 1, slice(7000, 7400))], fdr=0.05)
    longest = max(found, key=lambda one: one.lod)
    assert abs(longest.start - 7100) < 20
    assert abs(longest.end - 7500) < 20
    assert longest.q < 0.02
    rows = format_bed(found).splitlines()
    assert rows[0].startswith("#chrom")
    assert all(len(row.split("\t")) == 8 for row in rows)


@pytest.mark.parametrize("nominal", [0.05, 0.2])
def test_the_false_discovery_rate_holds_on_permuted_columns(nominal):
    """Elements called in permuted columns, at the threshold of the real ones, are false."""
    one = draw_columns(400_000, 2, slice(0, 0))
    lod = one.lod.copy()
    for start in range(0, 400_000, 4000):
        lod[start : start + 120] = np.where(np.arange(120) % 11, 0.25, -1.0)
    real = ScoredStretch("chr1", 0, lod, one.pattern)
    called = find_elements([real], fdr=nominal)
    least = min(element.lod for element in called)
    false = permute_scores(lod.astype(float), one.pattern.astype(float), seed=99)
    rate = np.mean([(scores >= least).sum() for scores in false]) / len(called)
    assert rate <= 1.2 * nominal


def test_columns_move_only_among_positions_at_which_the_same_genomes_are_present():
    lod = np.array([1.0, 2.0, -1, -2, np.nan])
    pattern = np.array([0.0, 0, 1, 1, 1])
    for scores in permute_scores(lod, pattern, 5):
        assert scores.tolist() == [3.0]


def test_equal_scores_have_one_rate():
    q = estimate_fdr(np.array([3.0, 1, 3, 1]), [np.array([1.0, 1.0])])
    assert q[0] == q[2]
    assert q[1] == q[3]
    assert q[0] < q[1]
