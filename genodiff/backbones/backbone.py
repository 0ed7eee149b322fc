"""What every network has.

A backbone of ours is two files. One of `backbones.kinds` has its settings and presets, without
torch:

    @BACKBONES.register("dit")
    class DiTSettings(BackboneSettings): ...

    PRESETS.add("dit-470k", DiTSettings(d_model=88, n_layer=5, n_head=4))

and one of `backbones` has the network, `@NETWORKS.register("dit") class DiT(Backbone)`. A plug-in
may have all in one file; its settings then build the network themselves.
"""

import copy
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from genodiff.backbones.settings import BACKBONES as BACKBONES
from genodiff.backbones.settings import NETWORKS as NETWORKS
from genodiff.backbones.settings import PRESETS as PRESETS
from genodiff.backbones.settings import BackboneSettings as BackboneSettings
from genodiff.errors import UsageError


class Backbone(nn.Module):
    """A denoiser `(xt, sigma, lengths) -> logits`, (B, L, V).

    `lengths` gives the length of each row where rows are padded on the right. A network whose
    settings have `n_classes` above 0 takes `labels` (B,) too: 0 to n_classes - 1, or -1 for none.
    """

    settings: BackboneSettings
    vocab_size: int
    paired: bool = False  # both strands stand side by side in `features`
    selects_rows: bool = False  # `forward` takes `rows`, a mask of the positions that get logits
    dropout_keys: Tensor | None = None  # of a step in training, from `dropout.dropout_keys`
    relatives: Any = None
    """The related genomes that it reads (`runs/related_backbone.py`)."""
    label: int | None = None
    """The class of rows that come without labels; None is no class."""

    @property
    def recalls(self) -> bool:
        """Whether `forward` takes `recalled` (B, L, 4), what a memory says of each position."""
        return self.settings.reads_memory

    @property
    def d_out(self) -> int:
        """The width of `features`."""
        return self.settings.d_model

    def of_class(self, label: int) -> "Backbone":
        """This network, its weights shared, for one class: `label` is 0 to n_classes - 1."""
        one = copy.copy(self)
        one.label = label
        return one

    def fill_labels(self, xt: Tensor, labels: Int[Tensor, " B"] | None) -> Int[Tensor, " B"] | None:
        """The labels of rows: those given, or else the network's own; a label of -1 is none.

        Raises `UsageError` where the network knows no classes.
        """
        if labels is None and self.label is not None:
            labels = torch.full((xt.shape[0],), self.label, device=xt.device)
        if labels is not None and not getattr(self.settings, "n_classes", 0):
            raise UsageError("this network knows no classes", fix="train one with --labels")
        return labels

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
