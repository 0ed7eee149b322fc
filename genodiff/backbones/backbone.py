"""What every network has.

A backbone of ours is two files. One of `backbones.kinds` has its settings and presets, without
torch:

    @BACKBONES.register("dit")
    class DiTSettings(BackboneSettings): ...

    PRESETS.add("dit-470k", DiTSettings(d_model=88, n_layer=5, n_head=4))

and one of `backbones` has the network, `@NETWORKS.register("dit") class DiT(Backbone)`. A plug-in
may have all in one file; its settings then build the network themselves.
"""

from jaxtyping import Float, Int
from torch import Tensor, nn

from genodiff.backbones.settings import BACKBONES as BACKBONES
from genodiff.backbones.settings import NETWORKS as NETWORKS
from genodiff.backbones.settings import PRESETS as PRESETS
from genodiff.backbones.settings import BackboneSettings as BackboneSettings


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
