"""A rival without a network: open reading frames that relatives keep as genes are kept.

At each base relatives have the same base, another, or nothing stands over it. Their shares differ
by the base of a codon, and from those between genes: a third base changes, the first two do not.
An open reading frame is scored by the sum over its bases of log P(shares | base of a codon) /
P(shares | between genes), counted on labels, and must be above a cost that validation chooses.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from codon_hmm import choose_orfs, list_orfs, mirror
from numpy.typing import NDArray
from yeast_genes import (
    GENOME,
    TEST,
    TRAIN,
    VALID,
    Span,
    count_levels,
    read_ids,
    read_labels,
)

from genodiff.alphabet import ID_CODES
from genodiff.finetuning.base_windows import read_window
from genodiff.io.faidx import Genome
from genodiff.models.opening import open_language
from genodiff.runs.related_backbone import RelatedBackbone

WINDOW, BESIDE, LEAST = 4096, 512, 90
COSTS = (0.0, 10.0, 20.0, 40.0, 60.0, 80.0, 120.0)


def read_shares(network: RelatedBackbone, span: Span) -> NDArray[np.float64]:
    """(L, 3): the shares of relatives that have the same base, another, or say nothing."""
    contig, first, last = span
    rows = []
    with Genome(GENOME) as genome:
        for start in range(first, last, WINDOW):
            ids = read_window(genome, (contig, start - BESIDE, start + WINDOW + BESIDE))
            places = network.describe_places(ID_CODES[ids])
            rows.append(places[BESIDE : BESIDE + min(WINDOW, last - start)])
    places = np.concatenate(rows)
    return np.stack([places[:, 0], places[:, 1] + places[:, 2], places[:, 3]], 1)


def learn(shares: NDArray[np.float64], labels: NDArray[np.int8]) -> NDArray[np.float64]:
    """(3, 3): log odds of each share at each base of a codon, against between genes."""
    total = np.full((4, 3), 1.0)
    for read, states in ((shares, labels), (shares[::-1], mirror(labels))):
        for kind in range(4):
            total[kind] += read[states == kind].sum(0)
    logs = np.log(total / total.sum(1, keepdims=True))
    return np.asarray(logs[1:] - logs[0])


def score_orfs(
    orfs: Sequence[tuple[int, int, int]], shares: NDArray[np.float64], odds: NDArray[np.float64]
) -> NDArray[np.float64]:
    found = []
    for start, end, strand in orfs:
        rows = shares[start:end] if strand > 0 else shares[start:end][::-1]
        found.append(float((rows.reshape(-1, 3, 3) * odds).sum()))
    return np.array(found)


def find_conserved(relatives: Path, work: Path) -> tuple[float, list]:
    """The cost that validation chose, and the genes of the test part."""
    network = open_language("yeast", "cpu", [relatives], fasta=GENOME).backbone
    assert isinstance(network, RelatedBackbone)
    labels = read_labels(work, [TRAIN]).cut(*TRAIN)
    odds, found = learn(read_shares(network, TRAIN), labels), {}
    for span in (VALID, TEST):
        ids = read_ids(span)
        orfs = list_orfs(ids, LEAST)
        found[span] = orfs, score_orfs(orfs, read_shares(network, span), odds), len(ids)

    def choose(span: Span, cost: float) -> list:
        orfs, scores, length = found[span]
        kept = [i for i, one in enumerate(scores) if one > cost]
        return choose_orfs([orfs[i] for i in kept], [scores[i] for i in kept], length)

    truth = read_labels(work, [VALID]).cut(*VALID)
    rates = []
    for cost in COSTS:
        total = count_levels(truth, choose(VALID, cost)).sum(0)[2]
        rates.append((2 * total[2] / max(1, total[0] + total[1]), -cost))
    cost = -max(rates)[1]
    return cost, choose(TEST, cost)
