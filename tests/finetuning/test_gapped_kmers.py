"""The gapped spectrum kernel: its features against its definition."""

import numpy as np
import pytest

from genodiff.alphabet import reverse_complement
from genodiff.finetuning.gapped_kmers import (
    compute_gapped_kernel,
    count_gap_patterns,
    gapped_features,
)
from tests.labelled_files import random_dna

SEQUENCES = [*(s.encode() for s in random_dna(4, 17, 3)), b"ACGTACGTTTAAACC", b"ACGTNNCGATCGANT",
             b"GAATTC", b"ACG"]  # fmt: skip


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize(("length", "k"), [(3, 1), (4, 2), (5, 3), (6, 4), (4, 4), (7, 5)])
def test_products_of_features_are_the_kernel(length, k, both):
    found = gapped_features(SEQUENCES, l=length, k=k, both_strands=both).astype(np.float64)
    naive = np.array(
        [
            [compute_gapped_kernel(x, y, length, k, both_strands=both) for y in SEQUENCES]
            for x in SEQUENCES
        ]
    )
    norm = np.sqrt(np.maximum(np.diag(naive), 1e-30))
    assert (naive.diagonal() > 0).sum() >= 6
    np.testing.assert_allclose((found @ found.T).toarray(), naive / norm / norm[:, None], atol=1e-6)


def test_both_strands_of_a_sequence_have_the_same_features_and_one_strand_has_not():
    turned = [bytes(reverse_complement(s)) for s in SEQUENCES]  # type: ignore[arg-type]
    for both in (True, False):
        a, b = (gapped_features(s, l=6, k=4, both_strands=both) for s in (SEQUENCES, turned))
        assert np.allclose(a.toarray(), b.toarray()) == both


def test_each_row_is_read_by_itself():
    whole = gapped_features(SEQUENCES, l=6, k=4, both_strands=True)
    for i, sequence in enumerate(SEQUENCES):
        alone = gapped_features([sequence], l=6, k=4, both_strands=True)
        assert np.array_equal(alone.toarray()[0], whole[[i]].toarray()[0])


def test_the_number_of_patterns():
    assert [count_gap_patterns(length, k) for length, k in ((6, 4), (8, 5), (10, 6))] == [
        10,
        35,
        126,
    ]
    assert gapped_features([b"ACGTACGT"], l=6, k=4, both_strands=False).shape[1] == 10 * 4**4
