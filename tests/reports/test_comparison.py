"""Generated beside real DNA: words up to strand, the sentence, and rows from whoever can judge."""

from itertools import product

import numpy as np
import pytest

from genodiff.alphabet import DNA, reverse_complement
from genodiff.reports.comparison import canonical_words, compare_sequences


def sets(n: int, length: int, gc: float, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    p = [(1 - gc) / 2, gc / 2, gc / 2, (1 - gc) / 2]
    return [np.array(DNA.targets, np.uint8)[rng.choice(4, length, p=p)] for _ in range(n)]


@pytest.mark.parametrize(("k", "n"), [(1, 2), (2, 10), (3, 32), (4, 136)])
def test_canonical_words_hold_every_word_once_with_its_reverse_complement(k, n):
    words, places = canonical_words(k)
    letters = ["".join(p) for p in product("ACGT", repeat=k)]
    assert len(words) == n
    assert sorted(p for group in places for p in group) == list(range(4**k))
    for word, group in zip(words, places, strict=True):
        assert {letters[p] for p in group} == {word, str(reverse_complement(word))}


def test_the_spectra_are_distributions_over_the_canonical_words():
    found = compare_sequences(sets(4, 500, 0.5, 1), sets(6, 500, 0.4, 2), sets(4, 500, 0.3, 3))
    assert [s.role for s in found.spectra] == ["real", "markov", "samples"]
    for s in found.spectra:
        assert sum(s.values) == pytest.approx(1)
    gc_rich = found.words.index("CCC")
    real, markov, samples = (s.values[gc_rich] for s in found.spectra)
    assert markov < real < samples


def test_the_sentence_gives_the_samples_the_floor_and_the_baseline():
    samples, real, markov = sets(4, 500, 0.5, 1), sets(6, 500, 0.4, 2), sets(4, 500, 0.3, 3)
    found = compare_sequences(samples, real, markov, markov_name="Markov 5")
    card = found.card
    for value in (card.js_samples[-1], card.js_floor[-1], card.js_markov[-1]):
        assert f"{value:.3f}" in found.sentence
    assert "4 samples, 2,000 bases" in found.sentence
    assert "Markov" not in compare_sequences(samples, real).sentence


def test_the_source_and_the_search_for_copies_judge_each_set():
    some = (sets(n, 300, 0.5, n) for n in (3, 6, 2))
    found = compare_sequences(*some, source_bits=len, copied=lambda s: len(s) / 100)
    assert dict(found.extra) == {
        "bits per base by the source": ["3.000", "2.000", "6.000"],
        "bases in 24‑mers of train": ["3.0%", "2.0%", "6.0%"],
    }
