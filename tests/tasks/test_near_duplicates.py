"""Test examples that nearly repeat another are clusters; the others stand alone."""

import numpy as np

from genodiff.alphabet import reverse_complement
from genodiff.tasks.examples import Examples
from genodiff.tasks.homology import list_test_clusters, number_clusters


def examples(sequences: list[bytes]) -> Examples:
    names = [str(i) for i in range(len(sequences))]
    return Examples(sequences, np.zeros(len(sequences), np.int64), names)


def test_sequences_of_either_strand_and_those_that_share_half_are_clusters():
    rng = np.random.default_rng(1)
    a, b, c = ("".join(rng.choice(list("ACGT"), 200)) for _ in range(3))
    shifted = a[60:] + "".join(rng.choice(list("ACGT"), 60))
    texts = [a, b, reverse_complement(a), c, shifted, b]
    found = list_test_clusters(examples([str(t).encode() for t in texts]), "dna")
    assert found == [[0, 2, 4], [1, 5]]
    assert number_clusters(found, 6).tolist() == [0, 1, 0, 3, 0, 1]


def test_sentences_of_the_same_words_are_one_and_without_sequences_nothing_is_known():
    texts = [b"A  cat\tsat", b"a cat\tsat", b"a dog\tsat"]
    assert list_test_clusters(examples(texts), "text") == [[0, 1]]
    assert list_test_clusters(examples([]), "dna") is None
