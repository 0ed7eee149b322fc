"""Test examples that are nearly the same sequence, so that they count as one test.

Of DNA, sequences that share half of their 24-mers on either strand are one cluster
(`homology.py`). Of text, sentences of the same words.
"""

import numpy as np
from numpy.typing import NDArray

from genodiff.domain import TEXT
from genodiff.tasks.examples import Examples, fingerprint_sequences
from genodiff.tasks.homology import find_clusters


def list_test_clusters(test: Examples, domain: str) -> list[list[int]] | None:
    """The clusters of two examples and more, by row, in order.

    It is None where the examples have no sequences.
    """
    if not test.sequences:
        return None
    if domain == TEXT.name:
        known: dict[bytes, int] = {}
        keys = fingerprint_texts(test.sequences)
        number = np.array([known.setdefault(key, len(known)) for key in keys], np.int64)
    else:
        number = find_clusters(test.sequences).of
    order = np.argsort(number, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(number[order])) + 1)
    return [group.tolist() for group in groups if len(group) > 1]


def number_clusters(clusters: list[list[int]], n: int) -> NDArray[np.int64]:
    """The number of each of `n` examples' cluster, from what `list_test_clusters` gave."""
    number = np.arange(n)
    for rows in clusters:
        number[rows] = rows[0]
    return number


def fingerprint_texts(sentences: list[bytes]) -> list[bytes]:
    """Equal for texts of the same words, whatever their case and blanks."""
    return fingerprint_sequences(
        b"\t".join(b" ".join(f.split()) for f in s.lower().split(b"\t")) for s in sentences
    )
