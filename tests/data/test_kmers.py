"""Windows that share 24-mers with the train split: against sets of strings, and the known share on
yeast.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from genodiff.alphabet import DNA
from genodiff.data import kmers as kmers_module
from genodiff.data.kmers import (
    canonical_kmers,
    measure_shared_cover,
    shared_kmers,
    streamed_kmer_fractions,
)
from genodiff.data.store import Coded
from tests.evaluation.yeast_tests import yeast_codes

K, K24 = 5, 24
SMALL = st.text("ACGTN", min_size=0, max_size=40)


def codes_of(text: str) -> NDArray[np.uint8]:
    return np.array(["ACGT".find(c) % 5 for c in text], np.uint8)


def other_strand(text: str) -> str:
    return text[::-1].translate(str.maketrans("ACGTN", "TGCAN"))


def kmers(text: str, k: int) -> list[str]:
    return [text[i : i + k] for i in range(len(text) - k + 1)]


@settings(deadline=None)
@given(
    st.lists(SMALL, max_size=4),
    st.lists(SMALL, max_size=4),
    st.sampled_from([1, 2, 3, 5, 7, 12, 16]),
)
def test_the_cover_is_that_of_shared_words_on_either_strand(windows, train, k):
    both = [strand for t in train for strand in (t, other_strand(t))]
    known = {w for strand in both for w in kmers(strand, k) if "N" not in w}
    shared = shared_kmers([codes_of(w) for w in windows], [codes_of(t) for t in train], k)
    found = measure_shared_cover([codes_of(w) for w in windows], shared, k)
    for text, cover in zip(windows, found, strict=True):
        inside = {i + j for i, w in enumerate(kmers(text, k)) if w in known for j in range(k)}
        bases = sum(c != "N" for c in text)
        assert cover == pytest.approx(len(inside) / bases if bases else 0)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7, 8, 15, 16, 23, 24, 30, 31])
def test_a_code_is_the_number_of_the_word_or_of_its_other_strand_whichever_is_smaller(k):
    text = "".join("ACGT"[i] for i in np.random.default_rng(k).integers(0, 4, 60))
    words, valid = canonical_kmers(codes_of(text), k)
    number = {c: str(i) for i, c in enumerate("ACGT")}

    def value(word: str) -> int:
        return int("".join(number[c] for c in word), 4)

    assert valid.all()
    wanted = [min(value(w), value(other_strand(w))) for w in kmers(text, k)]
    assert words.tolist() == wanted


@pytest.mark.parametrize("chunk", [1, 7, 50])
def test_the_result_does_not_depend_on_how_stretches_are_read(chunk, monkeypatch):
    rng = np.random.default_rng(5)
    train, scored = ("".join("ACGT"[i] for i in rng.integers(0, 4, n)) for n in (2000, 300))
    whole = shared_kmers([codes_of(scored)], [codes_of(train)], K)
    monkeypatch.setattr(kmers_module, "_CHUNK", chunk)
    np.testing.assert_array_equal(
        whole, shared_kmers([Coded(DNA.encode(scored))], [Coded(DNA.encode(train))], K)
    )


def test_a_planted_copy_is_found_on_either_strand_and_one_base_less_is_not():
    rng = np.random.default_rng(6)
    train = rng.integers(0, 4, 100_000).astype(np.uint8)
    windows = [rng.integers(0, 4, 500).astype(np.uint8) for _ in range(4)]
    windows[1][100:124] = train[5000:5024]
    windows[2][300:324] = 3 - train[70_000:70_024][::-1]
    windows[1][[99, 124]] = (train[[4999, 5024]] + 1) % 4
    windows[2][[299, 324]] = train[[70_024, 69_999]] ^ 1
    windows[3][100:123] = train[9000:9023]
    windows[3][123] = (train[9023] + 1) % 4
    windows[3][99] = (train[8999] + 1) % 4
    found = measure_shared_cover(windows, shared_kmers(windows, [train]))
    np.testing.assert_allclose(found, [0, 24 / 500, 24 / 500, 0])


@pytest.mark.slow
def test_about_one_yeast_window_in_fourteen_is_mostly_copied_and_one_in_six_touched():
    genome = yeast_codes()
    train = [codes for name, codes in genome.items() if name not in ("chrXIV", "chrXVI", "chrM")]
    test = genome["chrXIV"]
    windows = [test[i : i + 1024] for i in range(0, len(test) - 1023, 1024)]
    cover = measure_shared_cover(windows, shared_kmers(windows, train))
    assert (cover >= 0.25).mean() == pytest.approx(0.072, abs=0.002)
    assert (cover > 0).mean() == pytest.approx(0.156, abs=0.002)


@settings(deadline=None)
@given(
    st.lists(st.text("ACGTN", min_size=20, max_size=80), min_size=1, max_size=4),
    st.integers(0, 50),
    st.integers(24, 60),
    st.booleans(),
)
def test_streamed_fractions_are_those_of_sets_of_words(train, start, length, turned):
    piece = "".join(train)[start : start + length]
    query = [other_strand(piece) if turned else piece, train[0] + "A" * 30, "ACGT", "N" * 30]
    known = {w for t in train for strand in (t, other_strand(t)) for w in kmers(strand, K24)}
    found = streamed_kmer_fractions(
        [q.encode() for q in query], [Coded(DNA.encode(t)) for t in train]
    )
    for text, share in zip(query, found, strict=True):
        words = [w for w in kmers(text, K24) if "N" not in w]
        assert (share == sum(w in known for w in words) / len(words)) if words else np.isnan(share)
