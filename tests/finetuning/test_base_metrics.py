"""Figures at each base against cases made by hand, and against scikit-learn and scipy."""

import math

import numpy as np
import pytest
from scipy.stats import pearsonr
from sklearn.metrics import average_precision_score

from genodiff.annotation.gene_grammar import UNKNOWN, CodingGene
from genodiff.finetuning.base_lesson import Rates, compare_genes, measure_classes, measure_tracks

TRUE = {
    "a": [CodingGene(1, ((10, 13), (20, 26))), CodingGene(-1, ((40, 46),))],
    "b": [CodingGene(1, ((0, 6),))],
}
KNOWN = {"a": np.ones(60, bool), "b": np.ones(20, bool)}


def test_what_is_said_rightly_is_all_right():
    found = compare_genes(TRUE, TRUE, KNOWN)
    assert found == (Rates(21, 21, 21), Rates(4, 4, 4), Rates(3, 3, 3))
    assert {rates.f1 for rates in found} == {1.0}


def test_a_wrong_end_a_wrong_strand_and_an_invented_gene_count_where_they_are_wrong():
    said = {
        # One exon is right, the other ends too late; then the right bases on the wrong strand.
        "a": [CodingGene(1, ((10, 13), (20, 29))), CodingGene(1, ((40, 46),))],
        "b": [CodingGene(1, ((0, 6),)), CodingGene(-1, ((9, 12),))],
    }
    bases, exons, genes = compare_genes(TRUE, said, KNOWN)
    assert bases == Rates(true=21, said=12 + 6 + 6 + 3, right=9 + 6)
    assert exons == Rates(true=4, said=5, right=2)
    assert genes == Rates(true=3, said=4, right=1)
    assert (exons.sensitivity, exons.precision) == (2 / 4, 2 / 5)
    assert exons.f1 == pytest.approx(2 * 0.5 * 0.4 / (0.5 + 0.4))


def test_what_touches_unknown_bases_is_not_judged():
    known = {name: judged.copy() for name, judged in KNOWN.items()}
    known["a"][15] = False  # in the intron of the first gene: its exons are judged, it is not
    known["b"][3:] = False
    bases, exons, genes = compare_genes(TRUE, TRUE, known)
    assert bases == Rates(18, 18, 18)
    assert exons == Rates(3, 3, 3)
    assert genes == Rates(1, 1, 1)
    # A contig that is not judged does not count at all.
    assert compare_genes(TRUE, {}, {"b": KNOWN["b"]}).genes == Rates(1, 0, 0)


def test_without_genes_the_rates_are_not_numbers():
    for rates in compare_genes({}, {}, KNOWN):
        assert math.isnan(rates.sensitivity)
        assert math.isnan(rates.precision)
        assert math.isnan(rates.f1)


def test_exons_that_two_genes_share_count_once():
    twice = {"b": [CodingGene(1, ((0, 6),)), CodingGene(1, ((0, 6), (9, 12)))]}
    _, exons, genes = compare_genes(twice, twice, {"b": KNOWN["b"]})
    assert (exons.true, genes.true) == (2, 2)


def test_auprc_of_each_class_is_that_of_its_known_bases():
    draw = np.random.default_rng(0)
    labels = draw.choice([UNKNOWN, 0, 0, 0, 1, 2], 500)
    scores = draw.dirichlet(np.ones(4), 500)
    found = measure_classes(labels, scores, ("none", "x", "y", "absent"))
    known = labels != UNKNOWN
    for number, name in enumerate(("none", "x", "y")):
        wanted = average_precision_score(labels[known] == number, scores[known, number])
        assert found[name] == pytest.approx(wanted, abs=1e-12)
    assert math.isnan(found["absent"])
    # By hand: of four bases, the true ones are the first and the third by their scores.
    some = np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.9, 0.1]])
    by_hand = measure_classes(np.array([1, 0, 1, 0]), some, ("none", "x"))["x"]
    assert by_hand == pytest.approx((1 / 1 + 2 / 3) / 2)


def test_pearson_of_each_track_is_that_of_its_known_values():
    draw = np.random.default_rng(1)
    values = draw.normal(size=(300, 3)).astype(np.float32)
    predicted = values + draw.normal(size=(300, 3)).astype(np.float32)
    values[draw.random((300, 3)) < 0.3] = np.nan
    values[:, 2] = np.where(np.isnan(values[:, 2]), np.nan, 1.0)
    found = measure_tracks(values, predicted, ("a", "b", "flat"))
    for number, name in enumerate(("a", "b")):
        known = np.isfinite(values[:, number])
        wanted = pearsonr(values[known, number], predicted[known, number]).statistic
        assert found[name] == pytest.approx(wanted, abs=1e-6)
    assert math.isnan(found["flat"])
