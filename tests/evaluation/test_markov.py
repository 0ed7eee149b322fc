"""Interpolated Markov models and n-grams: counts and probabilities against slow, obvious versions,
and the yeast reference line.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from yeast_tests import yeast_codes

from genodiff.alphabet import DNA, encode_bases
from genodiff.data.store import Coded
from genodiff.errors import DataError
from genodiff.evaluation import markov, ngram
from genodiff.evaluation.markov import KmerCounts, count, fit, fit_pseudo

PERPLEXITIES = (3.897, 3.871, 3.860, 3.849, 3.845, 3.843, 3.837, 3.832, 3.831, 3.850)
"""Of chrXIV of yeast, at orders 0 to 8 and 10."""
TEXT = st.text("ACGTacgtN", max_size=60)


def codes_of(text: str) -> NDArray[np.uint8]:
    return np.array(["ACGT".find(c.upper()) % 5 for c in text], np.uint8)


def other_strand(text: str) -> str:
    return text.upper()[::-1].translate(str.maketrans("ACGTN", "TGCAN"))


def counted_slowly(texts: list[str], k: int) -> dict[str, int]:
    """(k+1)-mers on both strands, none across an N."""
    found: dict[str, int] = {}
    for text in texts:
        for strand in (text.upper(), other_strand(text)):
            for i in range(len(strand) - k):
                if "N" not in (word := strand[i : i + k + 1]):
                    found[word] = found.get(word, 0) + 1
    return found


def looked_up(counts: KmerCounts, word: str) -> int:
    row = int("".join(map(str, codes_of(word[:-1]))) or "0", 4)
    return int(counts.tables[len(word) - 1][row, "ACGT".index(word[-1])])


@settings(deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=4), st.integers(0, 3))
def test_counts_are_those_of_both_strands_and_never_span_an_n_or_an_end(texts, order):
    counts = count([codes_of(t) for t in texts], order)
    for k in range(order + 1):
        slow = counted_slowly(texts, k)
        assert counts.tables[k].sum() == sum(slow.values())
        assert all(looked_up(counts, word) == n for word, n in slow.items())


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 8, 64])
def test_counts_do_not_depend_on_how_a_stretch_is_read(chunk, monkeypatch):
    text = "ACGTTGCANNACGGTACNTTTTACGATCGATTNACGACGACG"
    whole = count([codes_of(text)], 4)
    monkeypatch.setattr(markov, "_CHUNK", chunk)
    pieces = count([Coded(DNA.encode(text))], 4)
    for a, b in zip(whole.tables, pieces.tables, strict=True):
        np.testing.assert_array_equal(a, b)


def probability_slowly(texts: list[str], context: str, base: str, pseudo: float) -> float:
    below = 0.25 if not context else probability_slowly(texts, context[1:], base, pseudo)
    seen = counted_slowly(texts, len(context))
    total = sum(seen.get(context + b, 0) for b in "ACGT")
    return (seen.get(context + base, 0) + pseudo * below) / (total + pseudo)


def test_probabilities_are_the_interpolation_of_the_docstring():
    texts = ["ACGTTGCANACGGTACTTTTACG", "GATTACA"]
    model = fit(count([codes_of(t) for t in texts], 3), pseudo=1.5)
    for k in range(4):
        for letters in product("ACGT", repeat=k + 1):
            context, base = "".join(letters[:-1]), letters[-1]
            row = int("".join(map(str, codes_of(context))) or "0", 4)
            expected = np.log(probability_slowly(texts, context, base, 1.5))
            assert model.tables[k][row, "ACGT".index(base)] == pytest.approx(expected, abs=1e-6)


def test_each_base_is_scored_by_the_longest_context_it_has():
    texts = ["ACGTTGCAACGGTACTTTTACGGATTACA"]
    model = fit(count([codes_of(t) for t in texts], 3))
    scored = "GANTTACA"
    nll = model.nll(codes_of(scored))
    for i, base in enumerate(scored):
        before = scored[:i].split("N")[-1]
        for k in range(4):
            if base == "N":
                assert nll[k, i] == 0
                continue
            context = before[max(0, len(before) - k) :]
            expected = -np.log(probability_slowly(texts, context, base, markov.PSEUDO))
            assert nll[k, i] == pytest.approx(expected, abs=1e-6)


def test_case_and_the_soft_mask_bit_do_not_matter_and_specials_are_no_bases():
    ids = DNA.encode("ACGTN")
    np.testing.assert_array_equal(encode_bases(ids), [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(encode_bases(ids | 0x80), [0, 1, 2, 3, 4])
    specials = np.array([DNA.mask_id, DNA.pad_id, DNA.unk_id, 0, 255], np.uint8)
    assert (encode_bases(specials) == 4).all()


def test_samples_have_the_law_of_the_model():
    text = np.random.default_rng(1).choice(4, 4000, p=[0.4, 0.3, 0.2, 0.1]).astype(np.uint8)
    model = fit(count([text], 2))
    drawn, again = (model.sample(400, 500, np.random.default_rng(2)) for _ in range(2))
    np.testing.assert_array_equal(drawn, again)
    assert drawn.shape == (400, 500)
    assert drawn.max() <= 3
    rows = np.exp(model.tables[2].astype(np.float64))
    context = drawn[:, :-2].astype(int) * 4 + drawn[:, 1:-1]
    seen = np.zeros((16, 4))
    np.add.at(seen, (context.ravel(), drawn[:, 2:].ravel()), 1)
    expected = rows * seen.sum(1, keepdims=True)
    chi2 = (np.square(seen - expected) / expected).sum()
    assert chi2 < 48 + 5 * (2 * 48) ** 0.5
    first = np.bincount(drawn[:, 0], minlength=4) / 400
    np.testing.assert_allclose(first, np.exp(model.tables[0][0]), atol=4 * 0.5 / 400**0.5)


@settings(deadline=None, max_examples=25)
@given(st.text("ACGTN", max_size=5))
def test_sequences_shorter_than_the_order_are_counted_and_scored(text):
    model = fit(count([codes_of("ACGTTGCAACGGTACTTTTACG"), codes_of(text)], 8))
    nll = model.nll(codes_of(text))
    assert nll.shape == (9, len(text))
    assert ((nll > 0) == (codes_of(text) < 4)).all()


def test_the_fitted_pseudo_counts_and_order_are_the_best_of_the_grid_on_what_is_held_out():
    rng = np.random.default_rng(3)
    text = rng.choice(4, 300, p=[0.4, 0.3, 0.2, 0.1]).astype(np.uint8)
    source = fit(count([text], 2), pseudo=0.1)
    train, held_out = (count(list(source.sample(5, n, rng)), 4) for n in (200, 4000))
    grid = np.geomspace(0.1, 30, 25).tolist()
    chosen = fit_pseudo(train, held_out, grid)

    def loss(*pseudo: float) -> float:
        """Held-out nats per base at the order that the last λ is for."""
        seen = held_out.tables[len(pseudo) - 1]
        return -float((seen * fit(train, pseudo).tables[-1].astype(np.float64)).sum() / seen.sum())

    for k, lam in enumerate(chosen):
        assert loss(*chosen[:k], lam) <= min(loss(*chosen[:k], other) for other in grid) + 1e-6
        assert loss(*chosen) <= loss(*chosen[: k + 1])
    # The source is of order 2; with few bases to count and no λ that could silence it, order 3
    # knows too much.
    assert len(chosen) == 3
    assert 0.1 < chosen[2] < 30
    assert min(loss(*chosen, lam) for lam in grid) > loss(*chosen)


def test_without_bases_nothing_can_be_fitted():
    some, none = (count([codes_of(text)], 1) for text in ("ACGT", "NNN"))
    with pytest.raises(DataError, match="no base"):
        fit(none)
    with pytest.raises(DataError, match="valid"):
        fit_pseudo(some, none)


@pytest.mark.slow
def test_the_yeast_reference_line_is_reproduced():
    genome = yeast_codes()
    train = [codes for name, codes in genome.items() if name not in ("chrXIV", "chrXVI", "chrM")]
    model = fit(count(train, 10))
    found = np.exp(model.nll(genome["chrXIV"]).mean(1, dtype=np.float64))
    reference = dict(zip((*range(9), 10), PERPLEXITIES, strict=True))
    for k, perplexity in reference.items():
        assert found[k] == pytest.approx(perplexity, abs=0.001)


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
