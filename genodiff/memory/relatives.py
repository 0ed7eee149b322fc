"""Relatives: genomes of related species, and what they say together of masked windows.

Each genome lies over a window by itself (`alignment.py`); then a tree and a chain of classes make
one factor L_i(b) for each base of all of them (`columns.py`). Only visible bases are read. This
file imports no torch; `remembering.py` puts a network in front.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np

from genodiff.memory.alignment import align_windows
from genodiff.memory.columns import ColumnNumbers, combine
from genodiff.memory.copying import Places, SeenWindow, read_sources
from genodiff.memory.far import Found, search_far
from genodiff.memory.memory import NOWHERE, Intervals, Memory
from genodiff.memory.numbers import RELATIVE_SEARCH, SPARSE, RelativeNumbers
from genodiff.memory.search import LONGEST, Effort
from genodiff.memory.tables import Chain, Floats
from genodiff.memory.text import NONE, Codes
from genodiff.memory.tree import sum_around

UNLIKE = 0.6
"""The share of differences above which a class of divergence says nothing of homology."""
DISTANT = 0.225
"""Divergence of a relative above which windows are searched by regions (`far.py`): the farthest
Saccharomyces has .213, a rodent of a human .237 by the ordinary search.
"""
LEAST = Effort(scored=1, most=1, wild=0)
"""Of the ordinary search where its diagonals are not read: it is asked for the evidence only."""
Loci = tuple[tuple[int, int], ...]
"""Of one window: for each genome the interval of its text that counts as if it were not there."""


class RelativeGenome(NamedTuple):
    """A genome as text and index, and how the target species differs from it."""

    memory: Memory
    numbers: RelativeNumbers

    @classmethod
    def join(cls, memory: Memory, numbers: RelativeNumbers) -> Self:
        """A genome whose copies are judged against the background of `numbers`, if there is one."""
        chain = Chain(np.array(numbers.background)) if numbers.background else memory.chain
        return cls(replace(memory, numbers=RELATIVE_SEARCH, chain=chain), numbers)

    @property
    def is_distant(self) -> bool:
        """Whether its windows should be searched by regions, as far as its numbers tell."""
        divergence, share = np.array(self.numbers.divergence), np.array(self.numbers.share)
        alike = divergence <= UNLIKE
        differ = float(divergence[alike] @ share[alike] / max(share[alike].sum(), 1e-9))
        return self.memory.table is not None and differ > DISTANT

    def search(
        self, windows: Codes, without: Intervals | None = None
    ) -> tuple[list[SeenWindow], Found]:
        """Windows as the model sees them, and the diagonals of each: by regions of a far genome."""
        if not self.numbers.far:
            return self.memory.search(windows, without)
        ordinary = (
            self.memory if self.memory.text.size > LONGEST else self.memory.with_effort(LEAST)
        )
        return search_far(self.memory.text, *ordinary.search(windows, without))


class Relatives(NamedTuple):
    """Genomes, in the order of the leaves of the tree, and the numbers that join them."""

    genomes: tuple[RelativeGenome, ...]
    columns: ColumnNumbers | None
    """None where there are no genomes."""

    def align(self, windows: Codes, without: Sequence[Loci] | None = None) -> Floats:
        """(G, B, L, 4): the chance that each genome has each base over each place, as told by all
        visible bases but that of the place; what is left to 1: that it says nothing.

        `windows` (B, L): codes, 4 where no base is visible. `without`: for each window the interval
        of each genome to leave out.
        """
        return self.align_homologs(windows, without)[0]

    def align_homologs(
        self, windows: Codes, without: Sequence[Loci] | None = None
    ) -> tuple[Floats, Floats]:
        """As `align`; and the part of it of classes whose bases differ in at most `UNLIKE`.

        What is left is a stretch that resembles nothing between two that are homologous.
        """
        over = np.zeros((len(self.genomes), *windows.shape, 4))
        homologous = np.zeros_like(over)
        for g, genome in enumerate(self.genomes):
            own: Intervals | None = None if without is None else [loci[g] for loci in without]
            prepared, found = genome.search(windows, own)
            text, alike = genome.memory.text, np.array(genome.numbers.divergence) <= UNLIKE
            sparse = (windows >= NONE).mean(1) > SPARSE if len(windows) else np.zeros(0, bool)
            for of, numbers in ((~sparse, genome.numbers), (sparse, genome.numbers.sparse)):
                at = np.flatnonzero(of)
                if len(at):
                    some = [prepared[i] for i in at], [found[i] for i in at]
                    over[g, at], homologous[g, at] = align_windows(text, *some, numbers, alike)[0]
        return over, homologous

    def weigh(self, windows: Codes, prior: Floats, without: Sequence[Loci] | None = None) -> Floats:
        """(B, L, 4): L, the factor of each base, the largest of a place being 1.

        `prior` (B, L, 4): what is said of hidden bases without relatives.

        Example: `relatives.weigh(windows, np.full((*windows.shape, 4), 0.25))`
        """
        if self.columns is None or not windows.size:
            return np.ones((*windows.shape, 4))
        return self.combine(self.align(windows, without), windows, prior)

    def combine(self, over: Floats, windows: Codes, prior: Floats) -> Floats:
        """As `weigh`, where `over` is what `align` found."""
        assert self.columns is not None
        factors = combine(over, windows, prior, self.columns)
        silent = ~over.any((0, 3))
        factors[silent] = 1.0
        return factors


STRAIN = 0.98
"""A genome is of the same species if most windows match it in more than this share of bases."""
LEAST_FLANK = 0.6
FLANK = 32


class Identities(NamedTuple):
    """For each window (B,), the share of its bases that are homologous, and the share that are
    homologous and match; both of all its bases but N.
    """

    homologous: Floats
    agrees: Floats

    @property
    def share_same(self) -> float:
        """The share of windows in which more than `STRAIN` of the bases match."""
        return float((self.agrees > STRAIN).mean()) if len(self.agrees) else 0.0

    @property
    def mean(self) -> float:
        """The identity over all homologous bases."""
        total = self.homologous.sum()
        return float(self.agrees.sum() / total) if total else 0.0

    @property
    def is_strain(self) -> bool:
        """Whether the genome is of the same species: most windows are nearly identical."""
        return self.share_same > 0.5


def measure_identities(memory: Memory, windows: Codes) -> Identities:
    """Measure the identity of windows (B, L) of codes with the genome of a memory, which
    distinguishes strains from other species.

    The best diagonal at a position is the one with the most matches among the `FLANK` bases on
    either side. Where it matches more than `LEAST_FLANK` of them, the position is homologous.
    Identity is the share of homologous bases that this diagonal matches.
    """
    found = memory.find_all(windows)
    rows = [
        _measure_one(memory, codes, diagonals)
        for codes, diagonals in zip(windows, found, strict=True)
    ]
    table = np.array(rows, np.float64).reshape(-1, 2)
    return Identities(table[:, 0], table[:, 1])


def _measure_one(
    memory: Memory, codes: Codes, diagonals: tuple[Places, Places]
) -> tuple[float, float]:
    known = codes < NONE
    if not any(map(len, diagonals)) or not known.any():
        return 0.0, 0.0
    sources = read_sources(memory.text, len(codes), diagonals, NOWHERE)
    agrees = ((sources == codes[:, None]) & known[:, None]).T
    around, n = sum_around(agrees, FLANK), sum_around(known[None], FLANK)[0]
    best, at = around.argmax(0), np.arange(len(codes))
    near = (around[best, at] > LEAST_FLANK * np.maximum(n, 1))[known]
    return float(near.mean()), float((agrees[best, at][known] * near).mean())
