"""A network with relatives: what it says of hidden bases, times what related genomes say.

It is a backbone as any other. So whatever reads a model (its bound, scores, samplers, maps) reads
the relatives too, and need not know of them.
"""

import copy
from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from genodiff.alphabet import ID_CODES
from genodiff.backbones.backbone import Backbone
from genodiff.errors import UsageError
from genodiff.memory.evidence import Floats
from genodiff.memory.profiles import ProfileScores
from genodiff.memory.relating import relating
from genodiff.memory.relatives import Relatives
from genodiff.memory.text import MOST_WINDOW, NONE, Codes
from genodiff.memory.tree import share_bases
from genodiff.memory.votes import (
    ProfileNumbers,
    VoteNumbers,
    count_votes,
    measure_change,
    score_heads,
    score_votes,
)

PLACE_CHANNELS = 4
"""Of `RelatedBackbone.describe_places`."""


class RelatedBackbone(Backbone):
    """`network` with `relatives` (`memory/relatives.py`); its features are the network's own.

    `votes` is how relatives are counted (`memory/votes.py`); `fit_profiles` returns the numbers of
    `memory/profiles.py` and is called when a profile score is first requested.
    """

    selects_rows = False

    def __init__(
        self, network: Backbone, relatives: Relatives, votes: VoteNumbers,
        fit_profiles: Callable[[], ProfileNumbers] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.network, self.relatives, self.votes = network, relatives, votes
        self.fit_profiles = fit_profiles
        self.settings, self.vocab_size = network.settings, network.vocab_size
        self.paired, self.label = network.paired, network.label

    def forward(self, xt: Int[Tensor, "B L"], *more: Any, **options: Any) -> Float[Tensor, "B L V"]:
        """Logits (B, L, V): the network's, but at masked bases of which relatives say something."""
        logits: Tensor = relating(self.network, self.relatives)(xt, *more, **options)
        return logits

    @property
    def _given(self) -> tuple[Any, ...]:
        return self.relatives, self.votes, self.fit_profiles

    @property
    def d_out(self) -> int:
        """The width of `features`."""
        return self.network.d_out

    def features(self, *given: Any, **options: Any) -> Float[Tensor, "B L D"]:
        """The network's own."""
        return self.network.features(*given, **options)

    def hidden_states(self, *given: Any, **options: Any) -> list[Float[Tensor, "B L D"]]:
        """The network's own."""
        return self.network.hidden_states(*given, **options)

    def read_windows(self, windows: Codes) -> tuple[Floats, Floats]:
        """What relatives say of each place of windows (B, L), told by all other places.

        That is what each genome has over it, (G, B, L, 4), and the factor of each base, (B, L, 4).
        Nothing is asked of the network: where a place is hidden, others take the genome's shares.
        """
        columns = self.relatives.columns
        assert columns is not None
        over = self.relatives.align(windows)
        prior = np.broadcast_to(share_bases(columns.gc), (*windows.shape, 4))
        return over, self.relatives.combine(over, windows, prior)

    def score_votes(self, over: Floats, ref: int) -> Floats:
        """(4,): the score of A, C, G and T in place of `ref`, by votes, in nats.

        `over` (G, 4): what each genome has over the place.
        """
        weights, kappa = np.array(self.votes.weights), self.votes.kappa
        votes = count_votes(over, weights)[None]
        return score_votes(votes, np.array([ref]), total=weights.sum(), kappa=kappa)[0]

    def measure_change(self, over: Floats, windows: Codes) -> Floats:
        """(B, L): how quickly the places around each change (`memory/votes.py`).

        `over` (G, B, L, 4): what each genome has over windows (B, L).
        """
        return measure_change(over, windows)

    def score_heads(self, over: Floats, ref: int, change: float) -> Floats:
        """As `score_votes`, each genome counting once; `change`: `measure_change` there."""
        return score_heads(over[:, None], np.array([ref]), np.array([change]))[0]

    def score_profiles(self, over: Floats, ref: int, change: float) -> Floats:
        """(4,): the score of each base in place of `ref` by mutation-selection columns.

        `over` (G, 4) and `change` as in `score_heads` (`memory/profiles.py`).
        """
        return self._profiles.score(over[:, None], np.array([ref]), np.array([change]))[0]

    @cached_property
    def _profiles(self) -> ProfileScores:
        columns = self.relatives.columns
        assert columns is not None
        assert self.fit_profiles is not None
        return ProfileScores(columns.tree, columns.gc, self.fit_profiles())

    def share_votes(self, over: Floats) -> Floats:
        """(..., 4): the share of all votes that each base has; what is left to 1 says nothing.

        `over` (G, ..., 4): what each genome has.
        """
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

    def describe_rows(
        self, ids: Int[Tensor, "B L"], lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B L 4"]:
        """`describe_places` of each row of token ids, 0 behind its length.

        Raises `UsageError` for a row that is too long to be searched.
        """
        rows, out = ids.cpu().numpy(), torch.zeros(*ids.shape, PLACE_CHANNELS)
        for i, n in enumerate([ids.shape[1]] * len(rows) if lengths is None else lengths.tolist()):
            if n > MOST_WINDOW:
                what = f"with relatives a window has at most {MOST_WINDOW:,} bases, not {n:,}"
                raise UsageError(what, fix="cut it with --window and --stride")
            out[i, :n] = torch.from_numpy(self.describe_places(ID_CODES[rows[i, :n]]))
        return out.to(ids.device)

    def of_class(self, label: int) -> "RelatedBackbone":
        """This network for one class, with the same relatives."""
        return RelatedBackbone(self.network.of_class(label), *self._given)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A copy of the network, beside the same relatives."""
        return type(self)(copy.deepcopy(self.network, memo), *self._given)

    def __getattr__(self, name: str) -> Any:
        """What is not of relatives is the network's own."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name in ("network", "relatives", "votes", "logits_at"):
                raise
            return getattr(nn.Module.__getattr__(self, "network"), name)
