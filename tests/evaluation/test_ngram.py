"""n-grams of tokens against their definition, written out."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genodiff.errors import DataError
from genodiff.evaluation import ngram


def by_hand(train: list[int], text: list[int], lambdas: list[float], size: int) -> list[Any]:
    """−ln P_k of every token of `text` for every order, from the formula."""
    out: list[list[float]] = []
    for k in range(len(lambdas)):
        row = []
        for i, token in enumerate(text):
            p = 1 / size
            for order in range(min(k, i) + 1):
                context = text[i - order : i]
                starts = range(len(lambdas) - 1 - order, len(train) - order)
                seen = [train[j : j + order + 1] for j in starts]
                n = sum(s[:-1] == context for s in seen)
                both = sum(s == [*context, token] for s in seen)
                p = (both + lambdas[order] * p) / (n + lambdas[order])
            row.append(-np.log(p))
        out.append(row)
    return out


@given(
    st.lists(st.integers(0, 4), min_size=12, max_size=60),
    st.lists(st.integers(0, 4), min_size=1, max_size=10),
)
def test_the_probabilities_are_those_of_the_formula(train, text):
    counts = ngram.count([np.array(train, np.uint16)], padded_size=1 << 16, size=5)
    assert counts.order == 3
    lambdas = [1.0, 0.5, 2.0, 4.0]
    words = ngram.pack_words(np.array(text, np.uint64), counts.bits, counts.order)
    found = ngram.nll(counts, lambdas, words, np.minimum(np.arange(len(text)), 3))
    assert np.allclose(found, by_hand(train, text, lambdas, 5))


@given(st.lists(st.integers(0, 2), min_size=8, max_size=40))
def test_each_order_is_a_distribution_over_the_next_token(train):
    counts = ngram.count([np.array(train, np.uint8)], padded_size=4, size=3)
    context = np.array([[*train[:6], a] for a in range(3)], np.uint64)
    rows = [ngram.pack_words(row, counts.bits, counts.order)[-1] for row in context]
    words = np.array(rows, np.uint64)
    p = np.exp(-ngram.nll(counts, [1.0] * (counts.order + 1), words, np.full(3, counts.order)))
    assert np.allclose(p.sum(1), 1)


def test_counting_in_chunks_counts_the_same(monkeypatch):
    ids = np.random.default_rng(1).integers(0, 50, 5000).astype(np.uint16)
    whole = ngram.count([ids], 264, 257)
    monkeypatch.setattr(ngram, "_CHUNK", 333)
    for one, other in zip(whole.tables, ngram.count([ids], 264, 257).tables, strict=True):
        assert np.array_equal(one.words, other.words)
        assert np.array_equal(one.counts, other.counts)
    assert ngram.find_highest_order(264) == 6
    assert ngram.find_highest_order(50258) == 3
    assert ngram.find_highest_order(32) == 6


def test_lambdas_follow_the_held_out_text_and_the_fitted_line_is_the_better_one():
    rng = np.random.default_rng(2)
    text = np.tile(np.array([1, 2, 3, 4, 2, 1], np.uint16), 400)
    text[rng.random(len(text)) < 0.1] = 7
    counts = ngram.count([text[:1800]], 264, 257)
    lambdas = ngram.fit(counts, text[1800:].astype(np.uint64))
    words = ngram.pack_words(text[1800:].astype(np.uint64), counts.bits, counts.order)
    known = np.minimum(np.arange(600), counts.order)
    both = (lambdas, [4096.0] * 7)
    fitted, fixed = (ngram.nll(counts, lam, words, known).mean(1) for lam in both)
    assert fitted[-1] < fixed[-1]
    assert fitted[3] < fitted[0]
    assert ngram.fit(counts, np.zeros(0, np.uint64)) == [4.0] * 7


def test_a_long_train_split_is_counted_up_to_a_limit_and_an_empty_one_is_an_error():
    ids = np.arange(1000, dtype=np.uint16) % 50
    assert ngram.count([ids, ids], 264, 257, most=900).tokens == 1000
    with pytest.raises(DataError, match="too little text"):
        ngram.count([], 264, 257)
