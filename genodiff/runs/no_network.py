"""The model `none`: no network. Each base is as frequent as it is in the genome that is read.

It is a `TrainedModel` as any other, so every verb that takes the name of a model takes it. Related
genomes do the rest. What is asked at masks is answered in NumPy, without importing torch; verbs
that call a network are given the same as one (`related_backbone.py`).
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA, ID_CODES
from genodiff.backbones.settings import PRESETS, BackboneSettings
from genodiff.domain import DNA as DNA_DOMAIN
from genodiff.io.file_kinds import sha256_json
from genodiff.memory.tables import Floats
from genodiff.memory.text import NONE, Codes
from genodiff.memory.tree import share_bases
from genodiff.registry import find_named
from genodiff.runs.config import OWN, RunConfig
from genodiff.runs.related_reader import RelatedReader
from genodiff.runs.run_paths import NO_NETWORK

if TYPE_CHECKING:
    from genodiff.backbones.backbone import Backbone

EVEN = 0.5
"""The share of C and G where nothing is known."""
RELATED = "genodiff.runs.related_backbone:RelatedBackbone"
_NETWORK = "genodiff.runs.related_backbone:BaseComposition"


class CompositionSettings(BackboneSettings):
    """The settings of `BaseComposition`: it has none. It cannot be trained."""

    kind: str = NO_NETWORK
    d_model: int = 1
    n_layer: int = 1

    @property
    def paired(self) -> bool:
        """Both strands have the same composition."""
        return True

    def build(
        self, vocab_size: int, complement: tuple[int, ...] | None = None, *, seed: int = 0
    ) -> "Backbone":
        """The composition of equally frequent bases."""
        found: Backbone = find_named(_NETWORK)(vocab_size, DNA.targets)
        return found

    def n_parameters(self, vocab_size: int) -> int:
        """None are trained."""
        return 0


class PlainComposition:
    """log P(A), ..., log P(T) at every position and strand, in single precision as logits are."""

    paired = True

    def __init__(self, gc: float = EVEN, device: str = "cpu") -> None:
        """`device` is that of the network of torch, where one is made."""
        self.gc, self.device = gc, device
        self.logits = np.log(share_bases(gc)).astype(np.float32)

    def read_logs(self, group: Codes, masked: NDArray[np.bool_]) -> Floats:
        """(M, 4): the logarithms at the M `masked` places of windows (B, L) of ids."""
        return _normalise(np.tile(self.logits.astype(np.float64), (int(masked.sum()), 1)))

    def to_backbone(self) -> "Backbone":
        """The same as a network."""
        found: Backbone = find_named(_NETWORK)(DNA.padded_size, DNA.targets, self.gc)
        return found.to(self.device).eval()


class RelatedComposition(RelatedReader):
    """A composition with relatives."""

    network: PlainComposition
    paired = True

    def read_logs(self, group: Codes, masked: NDArray[np.bool_]) -> Floats:
        """As `PlainComposition.read_logs`, with what relatives say (`memory/remembering.py`)."""
        mine = self.network.logits.astype(np.float64)
        total = _sum_logs(mine)
        prior = np.broadcast_to(np.exp(mine - total), (*group.shape, 4))
        factors = self.relatives.weigh(np.ascontiguousarray(ID_CODES[group]), prior)[masked]
        joint = mine + np.log(factors)
        joint = joint - _sum_logs(joint) + total
        joint[(factors == 1).all(-1)] = mine
        return _normalise(joint.astype(np.float32).astype(np.float64))

    def to_backbone(self) -> "Backbone":
        """The same as a network."""
        found: Backbone = find_named(RELATED)(self.network.to_backbone(), *self.given)
        return found.eval()


def _sum_logs(logs: Floats) -> Floats:
    most = logs.max(-1, keepdims=True)
    return np.asarray(most + np.log(np.exp(logs - most).sum(-1, keepdims=True)))


def _normalise(logs: Floats) -> Floats:
    return np.asarray(logs - _sum_logs(logs))


def measure_gc(windows: Codes) -> float:
    """The share of C and G in windows; a half where they hold no base."""
    known = windows[windows < NONE]
    return float(((known == 1) | (known == 2)).mean()) if len(known) else EVEN


def describe_composition(gc: float = EVEN, device: str = "cpu") -> dict[str, Any]:
    """Return the fields of a `TrainedModel` that depend on the composition."""
    digest = sha256_json({"composition": gc})[:12]
    return {"network": PlainComposition(gc, device), "digest": digest}


def make_composition_config() -> RunConfig:
    """Return the configuration of `none`: masked diffusion of DNA, all settings the default."""
    config = RunConfig(recipe=OWN, backbone=PRESETS[DNA_DOMAIN.preset])
    return config.model_copy(update={"backbone": CompositionSettings()})
