"""The statistics, motifs, diversity and longest matches of a scorecard, against slow definitions,
counts by hand, or sets whose answer is known.
"""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from genodiff.alphabet import DNA, SOFT
from genodiff.io.motifs import Motif
from genodiff.quality import scorecard as card
from genodiff.quality.match_index import MatchIndex
from genodiff.quality.motif_hits import (
    count_motif_hits,
    find_threshold,
    make_scores,
    measure_background,
)
from genodiff.quality.sample_quality import count_duplicates, measure_effective_number
from genodiff.quality.scorecard import longest_matches

texts = st.text("ACGTN", max_size=60)
counts = st.lists(st.integers(0, 9), min_size=4, max_size=4)


def ids(text: str) -> np.ndarray:
    return DNA.encode(text)


def random_text(seed: int, n: int, weights: tuple[float, ...] = (0.25, 0.25, 0.25, 0.25)) -> str:
    return "".join(np.random.default_rng(seed).choice(list("ACGT"), n, p=weights))


def test_a_spectrum_of_one_strand_counts_each_word_that_stands_there():
    spectrum = card.kmer_spectrum([ids("ACGTNAC")], 2, both_strands=False)
    words = ["".join(w) for w in product("ACGT", repeat=2)]
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


def test_the_effective_number_counts_modes():
    """Words of homopolymers of A (or T) and of C (or G) have none in common."""
    modes = [ids("A" * 40), ids("C" * 40)]
    assert measure_effective_number(modes * 5) == pytest.approx(2)
    assert measure_effective_number(modes[:1] * 7) == pytest.approx(1)
    wanted = np.exp(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))
    assert measure_effective_number([*modes[:1] * 3, modes[1]]) == pytest.approx(wanted)
    fresh = [ids(random_text(i, 60)) for i in range(20)]
    number = measure_effective_number(fresh)
    assert number > 15
    assert measure_effective_number([*fresh, *map(DNA.rc, fresh)]) == pytest.approx(number)


def test_duplicates_count_on_either_strand():
    one, other = ids("ACCGT"), ids("AAAAC")
    assert count_duplicates([one, other]) == 0
    assert count_duplicates([one, DNA.rc(one), one, other | 0x80]) == 2


def test_identity_is_that_of_the_most_similar_place_without_gaps():
    """Against all diagonals of both strands, one by one."""
    rng = np.random.default_rng(1)
    text = ids(random_text(1, 600))
    found = MatchIndex([text])
    for place, changes in ((0, 3), (250, 12), (510, 6), (560, 0)):
        copy = text[place : place + 80].copy()
        copy = np.concatenate([copy, ids(random_text(place, 80 - len(copy)))])
        copy[rng.choice(80, changes, replace=False)] = ids("A")[0]
        wanted = 0.0
        for strand in (text, DNA.rc(text)):
            padded = np.concatenate([np.zeros(79), strand, np.zeros(79)])
            rows = np.lib.stride_tricks.sliding_window_view(padded, 80)
            wanted = max(wanted, float((rows == copy).mean(1).max()))
        assert found.measure_identity([copy, DNA.rc(copy)]).tolist() == pytest.approx([wanted] * 2)


def test_a_sequence_is_not_compared_with_itself():
    rows = [ids(random_text(i, 70)) for i in range(3)]
    rows.append(DNA.rc(rows[0]))
    found = MatchIndex(rows).measure_identity(rows, skip_own=True)
    assert found[[0, 3]].tolist() == [1, 1]
    assert (found[1:3] < 0.6).all()


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_matches_are_those_of_the_slow_definition(seed):
    """Copies of every length, on both strands, at the ends and beside N."""
    rng = np.random.default_rng(seed)
    text = [list(random_text(seed + i, int(rng.integers(40, 400)))) for i in range(3)]
    text[1][20] = "N"
    texts = [ids("".join(part)) for part in text]
    queries = []
    for i in range(8):
        source = texts[rng.integers(3)]
        start, size = rng.integers(len(source)), rng.integers(1, 150)
        copied = source[start : start + size]
        copied = DNA.rc(copied) if rng.integers(2) else copied
        queries.append(np.concatenate([ids(random_text(seed + 9 + i, 7)), copied, ids("NACG")]))
    index = MatchIndex([part for part in texts])
    slow = longest_matches(queries, _long_stretches(texts))
    assert index.measure_longest(queries).tolist() == slow.tolist()


def _long_stretches(texts: list[np.ndarray]) -> list[np.ndarray]:
    """The stretches between N that have 32 bases or more: the others are not searched."""
    parts = [ids(part) for text in texts for part in DNA.decode(text).split("N")]
    return [part for part in parts if len(part) >= 32]


def test_a_copy_is_found_whole_beside_many_repeats():
    unit = random_text(1, 40)
    text = ids(unit * 30 + "C" + random_text(2, 300))
    whole = ids(random_text(3, 20) + unit * 3 + "A")
    found = MatchIndex([text]).measure_longest([whole, text[1100:1500], ids("")])
    assert found[0] >= 120
    assert found[1:].tolist() == [400, 0]


@pytest.mark.parametrize("text", [[], ["ACGT"], ["N" * 50]])
def test_a_text_without_a_whole_word_matches_nothing(text):
    index = MatchIndex([ids(part) for part in text])
    assert index.measure_longest([ids("ACGTACGT")]).tolist() == [0]
