"""The settings of networks, and the registries of kinds, presets and networks. No torch.

The settings and presets of a kind stand in a file of `backbones.kinds`, the network in a file of
`backbones`. So settings are read, and a wrong one is refused, before torch is imported.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Union

from pydantic import Field

from genodiff.registry import Registry
from genodiff.settings import Settings

if TYPE_CHECKING:
    import genodiff.backbones.backbone
    import genodiff.backbones.kinds.caduceus
    import genodiff.backbones.kinds.dimamba


class StepBytes(NamedTuple):
    """Bytes of GPU memory for each position of a window."""

    kept: float
    """From the forward pass for the backward pass."""
    working: float
    """More, at the same time, in the backward pass of one block."""


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
        return bool(getattr(self, "time_conditioning", False))

    @property
    def reads_memory(self) -> bool:
        """Whether the network is told what a memory of the training genome says of each base."""
        return bool(getattr(self, "recalls", False))

    @property
    def reads_blocks(self) -> bool:
        """Whether the network reads a block after its clean past (block diffusion)."""
        return False

    def build(
        self, vocab_size: int, complement: tuple[int, ...] | None = None, *, seed: int = 0
    ) -> "genodiff.backbones.backbone.Backbone":
        """A network with weights drawn from `seed`, or with the seed `TO_FILL` without them.

        `complement` maps each id to its complement; networks that read both strands need it.
        """
        more: dict[str, Any] = {"complement": complement} if self.paired else {}
        return NETWORKS[self.kind](settings=self, vocab_size=vocab_size, seed=seed, **more)

    @abstractmethod
    def n_parameters(self, vocab_size: int) -> int:
        """The number of weights, without building them."""

    def count_step_bytes(self, length: int, word: int) -> StepBytes | None:
        """What a training step on a GPU takes; None where it is not known without a measurement.

        `length` is that of a window, `word` the bytes of a number in products (2: bf16).
        """
        return None


BACKBONES: Registry[type[BackboneSettings]] = Registry(
    "backbone", package="genodiff.backbones.kinds"
)
"""The settings of each kind of network."""

PRESETS: Registry[BackboneSettings] = Registry("preset", package="genodiff.backbones.kinds")
"""Networks by name. Parameter counts beside them are with the padded DNA vocabulary of 16."""

NETWORKS: Registry[Callable[..., "genodiff.backbones.backbone.Backbone"]] = Registry(
    "network", package="genodiff.backbones"
)
"""The network of each kind; the first look-up imports torch."""


TO_FILL = -1
"""The seed of a network that is filled with weights after it is built."""
FREQUENCIES = 256
"""Width of the sinusoidal embedding of a noise level."""


MambaShape = Union[
    "genodiff.backbones.kinds.caduceus.CaduceusSettings",
    "genodiff.backbones.kinds.dimamba.DiMambaSettings",
]
"""The settings of a network of Mamba blocks."""


def count_mamba_weights(shape: MambaShape, width: int) -> int:
    """The weights of all blocks, a norm and a mixer of one or two directions, and a last norm."""
    inner, norm = shape.expand * width, width * (1 if shape.norm == "rms" else 2)
    convolution = inner * (shape.d_conv + shape.conv_bias)
    steps = inner * (shape.rank + 1)
    scan = inner * (shape.rank + 2 * shape.d_state) + inner * shape.d_state + inner
    projections = 3 * width * inner + (2 * inner + width) * shape.proj_bias
    pairs = 2 if shape.bidirectional and not shape.tie_directions else 1
    directions = (2 if shape.bidirectional else 1) * (convolution + steps + scan)
    return shape.n_layer * (norm + pairs * projections + directions) + norm


def count_condition_weights(d_cond: int, n_classes: int) -> int:
    """The weights of a `conditioning.Condition`."""
    labels = (n_classes + 1) * d_cond if n_classes else 0
    return FREQUENCIES * d_cond + d_cond + d_cond * d_cond + d_cond + labels


def count_modulation_weights(d_cond: int, d_model: int, n: int) -> int:
    """The weights of a `conditioning.Modulation`."""
    return n * d_model * (d_cond + 1)
