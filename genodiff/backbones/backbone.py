"""What every network has, and the registries of the kinds of networks and of their presets.

A backbone is one file: the settings of its kind, the network, and its presets. It registers the
settings and the presets:

    @BACKBONES.register("dit")
    class DiTSettings(BackboneSettings): ...

    class DiT(Backbone): ...

    PRESETS.add("dit-470k", DiTSettings(d_model=88, n_layer=5, n_head=4))
"""

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from genodiff.registry import Registry
from genodiff.settings import Settings


class BackboneSettings(Settings):
    """The shape of a network. A kind adds its own settings and sets `kind` to its name."""

    kind: str
    d_model: int = Field(ge=1, description="width of the residual stream")
    n_layer: int = Field(ge=1, description="number of blocks")

    usual_preset: ClassVar[str]
    """The preset that is taken where only the kind is named."""

    if TYPE_CHECKING:  # a setting of some kinds, a property of others

        @property
        def causal(self) -> bool:
            """Whether a position sees itself and those before it, and nothing else."""

    @property
    def paired(self) -> bool:
        """Whether both strands are read."""
        return False

    @property
    def time_conditioned(self) -> bool:
        """Whether the logits depend on sigma."""
        return False

    @abstractmethod
    def build(
        self, vocab_size: int, complement: tuple[int, ...] | None = None, *, seed: int = 0
    ) -> "Backbone":
        """A network with weights drawn from `seed`.

        `complement` maps each id to its complement; networks that read both strands need it.
        """

    @abstractmethod
    def n_parameters(self, vocab_size: int) -> int:
        """The number of weights, without building them."""


class Backbone(nn.Module):
    """A denoiser `(xt, sigma, lengths) -> logits`, (B, L, V).

    `lengths` gives the length of each row where rows are padded on the right.
    """

    settings: BackboneSettings
    vocab_size: int
    paired: bool = False  # both strands stand side by side in `features`
    selects_rows: bool = False  # `forward` takes `rows`, a mask of the positions that get logits
    dropout_keys: Tensor | None = None  # of a step in training, from `dropout.dropout_keys`

    @property
    def d_out(self) -> int:
        """The width of `features`."""
        return self.settings.d_model

    def features(
        self,
        xt: Int[Tensor, "B L"],
        sigma: Tensor | None = None,
        lengths: Int[Tensor, " B"] | None = None,
    ) -> Float[Tensor, "B L {self.d_out}"]:
        """What the head reads. Needed by `embed` and `finetune` only."""
        raise NotImplementedError

    def hidden_states(
        self,
        xt: Int[Tensor, "B L"],
        sigma: Tensor | None = None,
        lengths: Int[Tensor, " B"] | None = None,
    ) -> list[Float[Tensor, "B L {self.d_out}"]]:
        """The input of each block, then `features`: n_layer + 1 tensors. Needed by `embed` only."""
        raise NotImplementedError


BACKBONES: Registry[type[BackboneSettings]] = Registry("backbone", package="genodiff.backbones")
"""The settings of each kind of network."""

PRESETS: Registry[BackboneSettings] = Registry("preset", package="genodiff.backbones")
"""Networks by name. Parameter counts beside them are with the padded DNA vocabulary of 16."""
