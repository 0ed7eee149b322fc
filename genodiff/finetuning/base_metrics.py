"""How good labels at each base are, in the field's measures; unknown bases are left out.

    AUPRC       of each class against all others, over known bases
    Pearson     of each track, over its known values
    genes       sensitivity TP / (TP + FN) and precision TP / (TP + FP) of coding bases, of exons
                and of whole genes. A base is right on its strand; an exon (its coding part) by its
                strand and both ends; a gene by its strand and all its exons.

Source of the levels: Burset and Guigó, 1996 (what they call specificity is the precision here).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.annotation.gene_grammar import UNKNOWN, CodingGene
from genodiff.tasks.metrics import measure

Genes = Mapping[str, Sequence[CodingGene]]


class Rates(NamedTuple):
    """How many are true, how many are said, and how many of those are right."""

    true: int
    said: int
    right: int

    @property
    def sensitivity(self) -> float:
        """The share of the true that is found; NaN where there is none."""
        return self.right / self.true if self.true else float("nan")

    @property
    def precision(self) -> float:
        """The share of the said that is right; NaN where nothing is said."""
        return self.right / self.said if self.said else float("nan")

    @property
    def f1(self) -> float:
        """The harmonic mean of both; 0 where nothing is right."""
        both = self.true + self.said
        return 2 * self.right / both if both else float("nan")


class GeneRates(NamedTuple):
    """The rates at the three levels."""

    bases: Rates
    exons: Rates
    genes: Rates


def compare_genes(true: Genes, said: Genes, known: Mapping[str, NDArray[np.bool_]]) -> GeneRates:
    """Genes that are said against the true ones, on the contigs that are `known`.

    An exon, and a gene with its introns, is judged where all its bases are known.
    """
    levels = np.zeros((3, 3), np.int64)
    for contig, judged in known.items():
        some = [list(of.get(contig, ())) for of in (true, said)]
        coding = [_mark_bases(genes, judged) for genes in some]
        parts = [[(gene.strand, (one,)) for gene in genes for one in gene.parts] for genes in some]
        exons = [_keep_known(of, judged) for of in parts]
        whole = [_keep_known(((g.strand, g.parts) for g in genes), judged) for genes in some]
        right = np.count_nonzero(coding[0] & coding[1])
        levels += np.array(
            [
                (*(np.count_nonzero(of) for of in coding), right),
                (*map(len, exons), len(exons[0] & exons[1])),
                (*map(len, whole), len(whole[0] & whole[1])),
            ]
        )
    return GeneRates(*(Rates(*map(int, row)) for row in levels))


Span = tuple[int, tuple[tuple[int, int], ...]]


def _keep_known(spans: Iterable[Span], judged: NDArray[np.bool_]) -> set[Span]:
    """Those of which every base from the first to the last is judged."""
    return {
        (strand, parts)
        for strand, parts in spans
        if parts[-1][1] <= len(judged) and judged[parts[0][0] : parts[-1][1]].all()
    }


def _mark_bases(genes: Iterable[CodingGene], judged: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which judged bases are coding, on each strand: (2, L)."""
    marks = np.zeros((2, len(judged)), bool)
    for gene in genes:
        for start, end in gene.parts:
            marks[int(gene.strand < 0), start:end] = True
    return marks & judged


def measure_classes(
    labels: NDArray[np.integer], scores: NDArray[np.floating], names: Sequence[str]
) -> dict[str, float]:
    """AUPRC of each class by (N,) labels and (N, C) scores; NaN of a class that is at no base.

    Scores of one class need to be comparable between bases: chances, not logits.
    """
    known = labels != UNKNOWN
    truth, found = labels[known], scores[known].astype(np.float64)
    return {
        name: measure("auprc", "multilabel", truth[:, None] == number, found[:, number, None])
        for number, name in enumerate(names)
    }


def measure_tracks(
    values: NDArray[np.floating], predicted: NDArray[np.floating], names: Sequence[str]
) -> dict[str, float]:
    """Pearson's correlation of each track by (N, T) values; NaN of one that does not vary."""
    found = {}
    for number, name in enumerate(names):
        known = np.isfinite(values[:, number])
        pair = (of[known, number].astype(np.float64) for of in (values, predicted))
        found[name] = measure("pearson", "regression", *pair)
    return found
