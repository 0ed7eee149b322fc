"""The discriminator's figure: the area by pairs, what it tells apart, what it cannot."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genodiff.quality.discriminator import FOLDS, measure_area, measure_auroc

scores = st.lists(st.integers(0, 6), min_size=2, max_size=12)


def draw(seed: int, n: int, weights: tuple[float, ...]) -> list[bytes]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list("ACGT"), 60, p=weights)).encode() for _ in range(n)]


@given(scores, scores)
@settings(max_examples=25)
def test_the_area_is_the_share_of_pairs_in_the_right_order(a, b):
    pairs = [1.0 if x > y else 0.5 if x == y else 0.0 for x, y in itertools.product(a, b)]
    area, _ = measure_area(np.array(a, float), np.array(b, float))
    assert area == pytest.approx(np.mean(pairs))


def test_the_error_of_an_area_is_what_repetition_shows():
    rng = np.random.default_rng(1)
    areas = [measure_area(rng.normal(0.5, 1, 60), rng.normal(0, 1, 80)) for _ in range(400)]
    values, errors = zip(*areas, strict=True)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.1)


@pytest.mark.parametrize("by", ["kmers", "cnn"])
def test_other_composition_is_told_apart(by):
    n = 60 if by == "kmers" else 40
    found = measure_auroc(draw(1, n, (0.4, 0.1, 0.1, 0.4)), draw(2, n, (0.1, 0.4, 0.4, 0.1)), by=by)
    assert found["value"] > 0.97


def test_the_same_law_is_not_told_apart():
    weights = (0.3, 0.2, 0.2, 0.3)
    found = [measure_auroc(draw(i, 80, weights), draw(i + 50, 80, weights)) for i in range(6)]
    assert np.mean([area["value"] for area in found]) == pytest.approx(0.5, abs=0.06)
    assert all(area["ci95"][0] < 0.62 for area in found)


def test_too_few_sequences_have_no_figure():
    assert measure_auroc([b"ACGT"] * (2 * FOLDS - 1), [b"ACGT"] * 50) is None
