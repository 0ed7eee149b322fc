"""The scorecard's statistics, against counts by hand or by a slow loop."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from genodiff.alphabet import DNA, SOFT
from genodiff.quality import scorecard as card

texts = st.text("ACGTN", max_size=60)
counts = st.lists(st.integers(0, 9), min_size=4, max_size=4)


def ids(text: str) -> np.ndarray:
    return DNA.encode(text)


def random_text(seed: int, n: int, weights: tuple[float, ...] = (0.25, 0.25, 0.25, 0.25)) -> str:
    return "".join(np.random.default_rng(seed).choice(list("ACGT"), n, p=weights))


def test_a_spectrum_of_one_strand_counts_each_word_that_stands_there():
    spectrum = card.kmer_spectrum([ids("ACGTNAC")], 2, both_strands=False)
    words = ["".join(w) for w in itertools.product("ACGT", repeat=2)]
    found = {w: f for w, f in zip(words, spectrum, strict=True) if f}
    assert found == {"AC": 0.5, "CG": 0.25, "GT": 0.25}


@given(texts, st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_a_spectrum_of_both_strands_is_that_of_the_text_and_its_reverse_complement(text, k):
    both = card.kmer_counts([ids(text)], k)
    by_hand = card.kmer_counts([ids(text), DNA.rc(ids(text))], k, both_strands=False)
    assert np.array_equal(both, by_hand)


def test_the_soft_mask_bit_of_a_store_does_not_count():
    soft = ids("ACGTACGGT") | np.uint8(SOFT)
    assert np.array_equal(card.kmer_spectrum([soft], 3), card.kmer_spectrum([ids("ACGTACGGT")], 3))


@given(counts, counts)
def test_the_distance_is_that_of_scipy_in_bits(p, q):
    if sum(p) == 0 or sum(q) == 0:
        return
    left, right = np.array(p, float), np.array(q, float)
    wanted = jensenshannon(left, right, base=2)
    assert card.js_distance(left, right) == pytest.approx(wanted, abs=1e-7)


def test_gc_counts_g_and_c_among_bases_and_is_nan_without_any():
    found = card.gc_fractions([ids("ggcA"), ids("NNGA"), ids("NN"), ids("")])
    assert found[:2].tolist() == [0.75, 0.5]
    assert np.isnan(found[2:]).all()


def test_cpg_is_1_where_bases_meet_by_chance_and_0_where_cpg_is_missing():
    text = ids(random_text(1, 200_000, (0.3, 0.2, 0.2, 0.3)))
    assert card.cpg_ratio([text]) == pytest.approx(1, abs=0.05)
    assert card.cpg_ratio([ids("GCATGCATGC")]) == 0
    assert np.isnan(card.cpg_ratio([ids("AAAA")]))


def test_homopolymers_are_shares_of_bases_and_n_ends_a_run():
    shares = card.homopolymer_shares([ids("AAACNCCTTTT")], longest=3)
    assert shares.tolist() == pytest.approx([1 / 10, 2 / 10, 7 / 10])
    assert card.homopolymer_shares([ids("NN"), ids("")], longest=3).tolist() == [0, 0, 0]


def test_a_scorecard_puts_real_sequence_at_its_floor_and_another_law_above_it():
    biased = (0.35, 0.15, 0.15, 0.35)
    real = [ids(random_text(10 + i, 2000, biased)) for i in range(20)]
    good = [ids(random_text(100 + i, 2000, biased)) for i in range(5)]
    bad = [ids(random_text(200 + i, 2000)) for i in range(5)]
    markov = [ids(random_text(300 + i, 2000, biased)) for i in range(10)]
    like, unlike = card.scorecard(good, real, markov), card.scorecard(bad, real)
    assert like.kmer_sizes == (1, 2, 3, 4, 5, 6)
    for k in range(6):
        assert like.js_samples[k] == pytest.approx(like.js_floor[k], abs=0.03)
        assert like.js_markov[k] == pytest.approx(like.js_floor[k], abs=0.03)
        assert unlike.js_samples[k] > like.js_floor[k] + 0.05
    assert like.markov.bases == like.samples.bases == 10_000
    assert unlike.markov is None
    assert like.samples.lengths == [2000] * 5
    assert like.samples.gc_mean == pytest.approx(0.3, abs=0.02)
    assert sum(like.samples.homopolymers) == pytest.approx(1)


def test_a_scorecard_without_two_real_windows_is_refused():
    with pytest.raises(ValueError, match="two real windows"):
        card.scorecard([ids("ACGT")], [ids("ACGT")])
