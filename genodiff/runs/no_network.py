"""The model `none`: no network. Each base is as frequent as it is in the genome that is read.

It is a `TrainedModel` as any other, so every verb that takes the name of a model takes it. Related
genomes do the rest: `RelatedBackbone` asks it for its distribution where it asks a network.
"""

from typing import Any, NoReturn

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from genodiff.alphabet import DNA
from genodiff.backbones.backbone import Backbone
from genodiff.backbones.settings import PRESETS, BackboneSettings
from genodiff.domain import DNA as DNA_DOMAIN
from genodiff.errors import UsageError
from genodiff.io.identity import sha256_json
from genodiff.memory.text import NONE, Codes
from genodiff.memory.tree import share_bases
from genodiff.runs.config import OWN, RunConfig
from genodiff.runs.run_paths import NO_NETWORK

_EVEN = 0.5


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
    ) -> "BaseComposition":
        """The composition of equally frequent bases."""
        return BaseComposition(vocab_size, DNA.targets)

    def n_parameters(self, vocab_size: int) -> int:
        """None are trained."""
        return 0


class BaseComposition(Backbone):
    """log P(A), ..., log P(T) at every position; both strands have the same."""

    def __init__(self, vocab_size: int, targets: tuple[int, ...], gc: float = _EVEN) -> None:
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
        what = f"the model '{NO_NETWORK}' has no network, so nothing to embed or to fine-tune"
        raise UsageError(what, fix="give a trained model")

    hidden_states = features


def measure_gc(windows: Codes) -> float:
    """The share of C and G in windows; a half where they hold no base."""
    known = windows[windows < NONE]
    return float(((known == 1) | (known == 2)).mean()) if len(known) else _EVEN


def describe_composition(gc: float = _EVEN, device: str = "cpu") -> dict[str, Any]:
    """Return the fields of a `TrainedModel` that depend on the composition."""
    network = BaseComposition(DNA.padded_size, DNA.targets, gc).to(device).eval()
    return {"backbone": network, "digest": sha256_json({"composition": gc})[:12]}


def make_composition_config() -> RunConfig:
    """Return the configuration of `none`: masked diffusion of DNA, all settings the default."""
    config = RunConfig(recipe=OWN, backbone=PRESETS[DNA_DOMAIN.preset])
    return config.model_copy(update={"backbone": CompositionSettings()})
