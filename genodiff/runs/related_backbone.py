"""A network with relatives, a backbone as any other: whatever reads a model (its bound, scores,
samplers, maps) reads the relatives too. And the base composition of `none` as such a network.
"""

import copy
from typing import Any, NoReturn, Self

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from genodiff.alphabet import ID_CODES
from genodiff.backbones.backbone import Backbone
from genodiff.errors import UsageError
from genodiff.memory.remembering import relating
from genodiff.memory.text import MOST_WINDOW
from genodiff.memory.tree import share_bases
from genodiff.runs.no_network import EVEN, CompositionSettings
from genodiff.runs.related_reader import RelatedReader
from genodiff.runs.run_paths import NO_FEATURES

PLACE_CHANNELS = 4
"""Of `RelatedBackbone.describe_places`."""


class RelatedBackbone(RelatedReader, Backbone):
    """`network` with `relatives`; its features are the network's own."""

    selects_rows = False

    def __init__(self, network: Backbone, *given: Any) -> None:
        nn.Module.__init__(self)
        RelatedReader.__init__(self, network, *given)
        self.settings, self.vocab_size = network.settings, network.vocab_size
        self.paired, self.label = network.paired, network.label

    def forward(self, xt: Int[Tensor, "B L"], *more: Any, **options: Any) -> Float[Tensor, "B L V"]:
        """Logits (B, L, V): the network's, but at masked bases of which relatives say something."""
        logits: Tensor = relating(self.network, self.relatives)(xt, *more, **options)
        return logits

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

    def describe_rows(
        self, ids: Int[Tensor, "B L"], lengths: Int[Tensor, " B"] | None = None
    ) -> Float[Tensor, "B L 4"]:
        """`describe_places` of rows of ids, 0 past their lengths. Raises `UsageError`: too long."""
        rows, out = ids.cpu().numpy(), torch.zeros(*ids.shape, PLACE_CHANNELS)
        for i, n in enumerate([ids.shape[1]] * len(rows) if lengths is None else lengths.tolist()):
            if n > MOST_WINDOW:
                what = f"with relatives a window has at most {MOST_WINDOW:,} bases, not {n:,}"
                raise UsageError(what, fix="cut it with --window and --stride")
            out[i, :n] = torch.from_numpy(self.describe_places(ID_CODES[rows[i, :n]]))
        return out.to(ids.device)

    def of_class(self, label: int) -> "RelatedBackbone":
        """This network for one class, with the same relatives."""
        return RelatedBackbone(self.network.of_class(label), *self.given)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(copy.deepcopy(self.network, memo), *self.given)

    def __getattr__(self, name: str) -> Any:
        """What is not of relatives is the network's own."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name in ("network", "relatives", "votes", "logits_at"):
                raise
            return getattr(nn.Module.__getattr__(self, "network"), name)


class BaseComposition(Backbone):
    """log P(A), ..., log P(T) at every position; both strands have the same."""

    def __init__(self, vocab_size: int, targets: tuple[int, ...], gc: float = EVEN) -> None:
        super().__init__()
        self.settings, self.vocab_size, self.paired = CompositionSettings(), vocab_size, True
        logits = torch.zeros(vocab_size)
        logits[list(targets)] = torch.from_numpy(np.log(share_bases(gc))).float()
        self.logits = nn.Parameter(logits, requires_grad=False)

    def forward(self, xt: Int[Tensor, "B L"], *more: Any, **options: Any) -> Float[Tensor, "B L V"]:
        """The same logits everywhere."""
        return self.logits.expand(*xt.shape, -1)

    def features(self, *given: Any, **options: Any) -> NoReturn:
        """Raises `UsageError`: there are none."""
        raise UsageError(NO_FEATURES, fix="give a trained model")

    hidden_states = features
