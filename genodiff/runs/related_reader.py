"""What relatives say of windows, sites and spellings of a genome, in NumPy: no network is asked."""

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import encode_bases
from genodiff.memory.column_rates import Ancestry
from genodiff.memory.profiles import ProfileScores
from genodiff.memory.relatives import Relatives
from genodiff.memory.spellings import score_spellings
from genodiff.memory.tables import Floats
from genodiff.memory.text import NONE, Codes
from genodiff.memory.tree import (
    VoteNumbers,
    count_votes,
    measure_change,
    score_heads,
    score_votes,
    share_bases,
)
from genodiff.runs.related_genome import ProfileFit

if TYPE_CHECKING:
    from genodiff.runs.trained_model import TrainedModel


class RelatedColumns(NamedTuple):
    """What relatives say of n bases: `factors` (n, 4), L of A, C, G and T; `p` (n, 4), the chances
    of these by relatives alone; and `columns` (n, 2 + G), numbers that tracks draw
    .
    """

    factors: Floats
    p: Floats
    columns: Floats


class RelatedReader:
    """`network` with `relatives` (`memory/relatives.py`).

    `votes` is how relatives are counted (`memory/tree.py`); `fit_profiles` returns the numbers of
    `memory/profiles.py` and is called when a profile score is first requested. `fitted_to` is the
    sha256 of the genome's file that all of these are fitted to.
    """

    def __init__(
        self, network: Any, relatives: Relatives, votes: VoteNumbers,
        fit_profiles: ProfileFit | None = None, fitted_to: str = "",
    ) -> None:  # fmt: skip
        self.network, self.relatives, self.votes = network, relatives, votes
        self.fit_profiles, self.fitted_to = fit_profiles, fitted_to
        self.refitted: dict[str, TrainedModel] = {}  # by the sha256 of another genome

    @property
    def given(self) -> tuple[Any, ...]:
        """What it is made of beside the network."""
        return self.relatives, self.votes, self.fit_profiles, self.fitted_to

    def read_windows(self, windows: Codes) -> tuple[Floats, Floats, Floats]:
        """What relatives say of each place of windows (B, L), told by all other places.

        That is what each genome has over it, (G, B, L, 4), the factor of each base, (B, L, 4), and
        the part of the first that is homologous. Nothing is asked of the network: where a place is
        hidden, others take the genome's shares.
        """
        columns = self.relatives.columns
        assert columns is not None
        over, homologous = self.relatives.align_homologs(windows)
        prior = np.broadcast_to(share_bases(columns.gc), (*windows.shape, 4))
        return over, self.relatives.combine(over, windows, prior), homologous

    def read_columns(self, ids: NDArray[np.uint8], at: slice) -> RelatedColumns:
        """What is said of the bases `at` of a window (L,) of ids that hides nothing; NaN where it
        has no base.
        """
        codes = encode_bases(ids)[None]
        over, factors, _ = self.read_windows(codes)
        over, factors, codes = over[:, 0, at], factors[0, at], codes[0, at]
        columns, votes = self.relatives.columns, self.share_votes(over)
        assert columns is not None
        p = factors * share_bases(columns.gc)
        rows, known = np.arange(len(codes)), codes < NONE
        own = np.where(known, codes, 0)
        same = votes[rows, own]
        of_genomes = 2 * over[:, rows, own] - over.sum(-1)
        table = np.stack([same, votes.sum(-1) - same, *of_genomes], 1)
        table[~known] = np.nan
        return RelatedColumns(factors, p / p.sum(-1, keepdims=True), table)

    @cached_property
    def ancestry(self) -> Ancestry:
        """What tells the ancestral base of a site (`memory/column_rates.py`)."""
        assert self.relatives.columns is not None
        return Ancestry(self.relatives.columns)

    def score_votes(self, over: Floats, ref: int) -> Floats:
        """(4,): each base's score in place of `ref` by votes, in nats; `over` (G, 4)."""
        weights, kappa = np.array(self.votes.weights), self.votes.kappa
        votes = count_votes(over, weights)[None]
        return score_votes(votes, np.array([ref]), total=weights.sum(), kappa=kappa)[0]

    def measure_change(self, over: Floats, windows: Codes) -> Floats:
        """(B, L): how quickly the places around each change, of `over` (G, B, L, 4)."""
        return measure_change(over, windows)

    def score_heads(self, over: Floats, ref: int, change: float) -> Floats:
        """As `score_votes`, each genome counting once; `change`: `measure_change` there."""
        return score_heads(over[:, None], np.array([ref]), np.array([change]))[0]

    def read_profiles(self, over: Floats, windows: Codes) -> Floats:
        """(B, L, 4, 2): the log-likelihood of each base by profiles, and `measure_change`."""
        change = self.measure_change(over, windows)[..., None].repeat(4, -1)
        return np.stack([self._profiles.weigh(over, windows), change], -1)

    def score_profiles(self, over: Floats, ref: int, around: Floats) -> Floats:
        """(4,): scores of bases in place of `ref` by mutation-selection columns; `over` (G, 4)."""
        change = around[[0], 1]
        return self._profiles.compare(around[None, :, 0], over[:, None], np.array([ref]), change)[0]

    def compare_spellings(self, ref: Codes, alt: Codes, span: tuple[int, int]) -> float:
        """Return the score of two spellings (L,) of a window, in nats (`memory/spellings.py`).

        `span`: the first base of `ref` that differs, and the last + 1.
        """
        weights = np.array(self.votes.weights)
        return score_spellings(self.relatives, self._profiles, weights, ref, alt, span)

    @cached_property
    def _profiles(self) -> ProfileScores:
        columns = self.relatives.columns
        assert columns is not None
        assert self.fit_profiles is not None
        return ProfileScores(columns.tree, columns.gc, self.fit_profiles())

    def share_votes(self, over: Floats) -> Floats:
        """(..., 4): each base's share of all votes; the rest say nothing. `over` (G, ..., 4)."""
        weights = np.array(self.votes.weights)
        return count_votes(over, weights / weights.sum())

    def describe_places(self, codes: Codes) -> Floats:
        """(L, 4): which share of the votes has the base of a window itself, the other purine or
        pyrimidine, one of the other two, or says nothing, at each place.

        `codes` (L,), 4 where no base is known: there all say nothing. On the other strand the same.
        """
        known, votes = codes < NONE, self.share_votes(self.relatives.align(codes[None])[:, 0])
        bases = np.where(known, codes, 0)[:, None].astype(np.int64)
        same, transition = (np.take_along_axis(votes, bases ^ way, 1)[:, 0] for way in (0, 2))
        told = np.stack([same, transition, votes.sum(1) - same - transition], 1) * known[:, None]
        return np.concatenate([told, 1 - told.sum(1, keepdims=True)], 1)
