"""Rivals without a network: the longest open reading frames, and a hidden Markov model of codons.

The model has 19 states: between genes, and of each strand three bases of a start codon, of codons
and of a stop codon. A base is drawn by the k bases before it and its state (Borodovsky and
McIninch, 1993; GeneMark), counted on labels; those of the reverse strand read the other way. The
path is the best one (Viterbi). k and the cost of a gene are chosen on the validation part.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from genodiff.annotation.gene_grammar import CodingGene
from genodiff.annotation.state_chain import FORBIDDEN, find_long_path

START, CODON, STOP, SIDE = 1, 4, 7, 9
N = 1 + 2 * SIDE
COMPLEMENT = np.array([3, 2, 1, 0])
STOP_IDS = ((3, 0, 0), (3, 0, 2), (3, 2, 0))
ATG = (0, 3, 2)


def find_orfs(ids: NDArray[np.int64], least: int = 300) -> list[CodingGene]:
    """The longest open reading frames of both strands, the longer first, none over another."""
    orfs = list_orfs(ids, least)
    return choose_orfs(orfs, [end - start for start, end, _ in orfs], len(ids))


def list_orfs(ids: NDArray[np.int64], least: int) -> list[tuple[int, int, int]]:
    """Start, end and strand of what begins with the first ATG after a stop and ends with a stop."""
    found = []
    for strand in (1, -1):
        read = ids if strand > 0 else COMPLEMENT[ids[::-1]]
        for frame in range(3):
            codons = read[frame : frame + (len(read) - frame) // 3 * 3].reshape(-1, 3)
            begins = (codons == ATG).all(1)
            ends = np.any([(codons == stop).all(1) for stop in STOP_IDS], 0)
            start = None
            for i in np.flatnonzero(begins | ends).tolist():
                if ends[i]:
                    if start is not None and 3 * (i + 1 - start) >= least:
                        a, b = frame + 3 * start, frame + 3 * (i + 1)
                        place = (a, b) if strand > 0 else (len(ids) - b, len(ids) - a)
                        found.append((*place, strand))
                    start = None
                elif start is None:
                    start = i
    return found


def choose_orfs(
    orfs: list[tuple[int, int, int]], scores: Sequence[float], length: int
) -> list[CodingGene]:
    """The best first, none over or beside another: genes with no base between have no path."""
    taken, kept = np.zeros(length + 1, bool), []
    for i in sorted(range(len(orfs)), key=lambda i: -scores[i]):
        a, b, strand = orfs[i]
        if not taken[a : b + 1].any():
            taken[max(a - 1, 0) : b + 1] = True
            kept.append(CodingGene(strand, ((a, b),)))
    return sorted(kept, key=lambda one: one.parts)


def allow(ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """(L, 10) of the forward strand: 0, or `FORBIDDEN` where letters make a state impossible."""
    length = len(ids)
    padded = np.concatenate([ids, [-1, -1]])
    triple = np.stack([padded[:length], padded[1 : length + 1], padded[2 : length + 2]], 1)
    is_start = (triple == ATG).all(1)
    is_stop = np.any([(triple == stop).all(1) for stop in STOP_IDS], 0)
    found = np.zeros((length, 1 + SIDE))
    for base in range(3):
        there = np.zeros((2, length), bool)
        there[0, base:], there[1, base:] = is_start[: length - base], is_stop[: length - base]
        found[~there[0], START + base] = FORBIDDEN
        found[~there[1], STOP + base] = FORBIDDEN
    ends = np.zeros(length, bool)
    ends[2:] = is_stop[: length - 2]
    found[ends, CODON + 2] = FORBIDDEN
    return found


def both_strands(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """(L, 19) of forward scores (L, 10), and those of the reverse complement (L, 10)."""
    return np.concatenate([one, other[::-1, 1:]], 1)


def steps(gene: float, more: float) -> NDArray[np.float64]:
    """Scores of steps: a gene begins with the chance `gene`, one more codon has `more`."""
    forward = np.full((1 + SIDE, 1 + SIDE), FORBIDDEN)
    for base in range(2):
        for kind in (START, CODON, STOP):
            forward[kind + base, kind + base + 1] = 0.0
    forward[0, START] = np.log(gene / 2)
    forward[START + 2, CODON] = forward[CODON + 2, CODON] = np.log(more)
    forward[START + 2, STOP] = forward[CODON + 2, STOP] = np.log1p(-more)
    forward[STOP + 2, 0] = 0.0
    found = np.full((N, N), FORBIDDEN)
    found[: 1 + SIDE, : 1 + SIDE] = forward
    back = forward.T.copy()  # read from left to right, a reverse gene begins with its stop
    back[0, STOP + 2], back[START, 0] = forward[0, START], 0.0
    found[0, 1 + SIDE :], found[1 + SIDE :, 0] = back[0, 1:], back[1:, 0]
    found[1 + SIDE :, 1 + SIDE :] = back[1:, 1:]
    found[0, 0] = np.log1p(-gene)
    return found


def best_genes(scores: NDArray[np.float64], chances: NDArray[np.float64]) -> list[CodingGene]:
    """The genes of the best path through (L, 19) scores."""
    free = np.full(N, FORBIDDEN)
    free[[0, *range(CODON, CODON + 3), *range(CODON + SIDE, CODON + SIDE + 3)]] = 0.0
    path = find_long_path(scores.astype(np.float32), chances.astype(np.float32), free, free)
    inside = np.concatenate([[False], path > 0, [False]])
    found = []
    for a, b in np.flatnonzero(inside[1:] != inside[:-1]).reshape(-1, 2).tolist():
        ends = {int(path[a]), int(path[b - 1])}
        if ends in ({START, STOP + 2}, {START + SIDE, STOP + 2 + SIDE}):
            found.append(CodingGene(1 if path[a] <= SIDE else -1, ((a, b),)))
    return found


class CodonModel:
    """Counts of bases by the k before them: between genes, and at each base of a codon."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.counts = np.full((4, 4**k, 4), 0.5)
        self.genes = self.codons = self.between = 0

    def learn(self, ids: NDArray[np.int64], labels: NDArray[np.int8]) -> None:
        """Count one contig: labels are those of `gene_grammar`, of which introns are left out."""
        for read, states in ((ids, labels), (COMPLEMENT[ids[::-1]], mirror(labels))):
            context = self._contexts(read)
            for kind in range(4):
                # Between genes is counted in both directions, as it is read in both.
                at = np.flatnonzero((states == kind) & (context >= 0))
                np.add.at(self.counts[kind], (context[at], read[at]), 1.0)
            self.codons += int((states == 1).sum())
            self.genes += int(((states[:-1] == 0) & (states[1:] == 1)).sum())
        self.between += int((labels == 0).sum())

    def _contexts(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        found = np.full(len(ids), -1)
        value = np.zeros(len(ids) - self.k, np.int64)
        for i in range(self.k):
            value = 4 * value + ids[i : i + len(value)]
        found[self.k :] = value
        return found

    def scores(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """(L, 19) logarithms, of letters that a state cannot have `FORBIDDEN`."""
        table = np.log(self.counts / self.counts.sum(-1, keepdims=True))
        parts = []
        for read in (ids, COMPLEMENT[ids[::-1]]):
            context = self._contexts(read).clip(0)
            each = table[:, context, read].T
            parts.append(each[:, [0, *3 * (1, 2, 3)]] + allow(read))
        return both_strands(*parts)

    def predict(self, ids: NDArray[np.int64], cost: float = 0.0) -> list[CodingGene]:
        """The genes; each has `cost` taken off its score."""
        walk = steps(self.genes / self.between, 1 - self.genes / self.codons)
        walk[0, 1:] -= cost * (walk[0, 1:] > FORBIDDEN)
        return best_genes(self.scores(ids), walk)


def mirror(labels: NDArray[np.int8]) -> NDArray[np.int8]:
    """Labels of the reverse complement."""
    turned = labels[::-1]
    return np.where(turned > 6, turned - 6, np.where(turned > 0, turned + 6, turned))
