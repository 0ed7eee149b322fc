"""Motifs found in sequences, against a loop over places and all words of a length."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genodiff.io.motifs import Motif
from genodiff.quality.motif_hits import (
    count_motif_hits,
    find_threshold,
    make_scores,
    measure_background,
)
from tests.quality.test_scorecard import ids, random_text

BACKGROUND = np.array([0.3, 0.2, 0.15, 0.35])


def draw_motif(seed: int, width: int) -> Motif:
    rng = np.random.default_rng(seed)
    return Motif(f"m{seed}", "m", rng.dirichlet([0.3] * 4, width), None)


@given(st.integers(0, 1000), st.integers(1, 5), st.sampled_from([0.5, 0.1, 0.01, 1e-3, 1e-9]))
def test_the_threshold_is_the_least_score_of_that_probability(seed, width, p_value):
    """Every word of the motif's width is listed, with its probability under the background."""
    scores = make_scores(draw_motif(seed, width), BACKGROUND)
    words = list(product(range(4), repeat=width))
    score = np.array([sum(scores[i, b] for i, b in enumerate(word)) for word in words])
    chance = np.array([np.prod(BACKGROUND[list(word)]) for word in words])
    least = find_threshold(scores, BACKGROUND, p_value)
    reached = chance[score >= least].sum()
    if chance[score == score.max()].sum() > p_value:
        assert least == score.max()
        return
    assert reached <= p_value * (1 + 1e-6)
    lower = score[score < least]
    if len(lower):
        assert chance[score >= lower.max()].sum() > p_value


@given(st.text("ACGTN", max_size=40), st.integers(0, 20), st.integers(1, 4))
def test_hits_are_what_a_loop_over_places_finds(text, seed, width):
    motif = draw_motif(seed, width)
    scores = make_scores(motif, BACKGROUND)
    least = find_threshold(scores, BACKGROUND, 0.1)
    wanted = 0
    for at in range(len(text) - width + 1):
        word = text[at : at + width]
        for one in (word, "".join("TGCAN"["ACGTN".index(c)] for c in reversed(word))):
            if "N" not in one:
                score = sum(int(scores[i, "ACGT".index(c)]) for i, c in enumerate(one))
                wanted += score >= least
    found = count_motif_hits([ids(text), ids("")], [motif], BACKGROUND, 0.1)
    assert found.tolist() == [[wanted], [0]]


def test_hits_of_background_come_as_often_as_the_p_value_says():
    text = ids(random_text(1, 400_000))
    background = measure_background([text])
    motifs = [draw_motif(seed, 8) for seed in range(3)]
    found = count_motif_hits([text], motifs, background, 1e-3)[0]
    places = 2 * 400_000
    for motif, hits in zip(motifs, found, strict=True):
        scores = make_scores(motif, background)
        least = find_threshold(scores, background, 1e-3)
        words = np.array(list(product(range(4), repeat=8)))
        reached = scores[np.arange(8), words].sum(1) >= least
        exact = np.prod(background[words], 1)[reached].sum()
        assert exact <= 1e-3
        assert hits == pytest.approx(places * exact, abs=5 * np.sqrt(places * exact))


def test_no_hit_spans_two_sequences_and_none_is_lost_at_an_edge():
    motif = Motif("w", "w", np.eye(4)[[0, 1, 2, 3, 0, 0, 1]], None)  # ACGTAAC
    texts = ("ACGT", "AAC", "ACGTAAC", "GTTACGT", "acgtaacACGTAAC")
    rows = count_motif_hits([ids(text) for text in texts], [motif], np.full(4, 0.25))
    assert rows[:, 0].tolist() == [0, 0, 1, 1, 2]
