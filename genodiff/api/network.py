"""The network of a model as a `torch.nn.Module` for a custom training loop."""

from typing import Literal, overload

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from genodiff.backbones.backbone import Backbone
from genodiff.errors import UsageError
from genodiff.kernels.defaults import own_defaults


class Network(nn.Module):
    """Token ids (B, L) → logits (B, L, V), in any mode, on any device, under autograd.

    It shares its weights with its `genodiff.Model`: train it, and the model samples from the
    trained weights. `state_dict`, `.to(device)`, `.train()` and `copy.deepcopy` work as for any
    module.

    `torch.export.export` accepts it with dynamic batch and length, with `lengths` and with
    `hidden_states`. The program contains plain torch operations instead of genodiff's kernels:
    equal up to float error, slower, and with L · E · N numbers of memory per layer.
    `torch.jit.trace` records the length of its example.
    """

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.backbone = backbone

    @property
    def width(self) -> int:
        """D: the channels of `features` and of each hidden state."""
        return self.backbone.d_out

    @property
    def vocab_size(self) -> int:
        """V: the rows of the head, possibly more than there are tokens."""
        return self.backbone.vocab_size

    @overload
    def forward(
        self,
        ids: Int[Tensor, "B L"],
        lengths: Int[Tensor, " B"] | None = None,
        sigma: Float[Tensor, " B"] | None = None,
        *,
        hidden_states: Literal[False] = False,
    ) -> Float[Tensor, "B L V"]: ...

    @overload
    def forward(
        self,
        ids: Int[Tensor, "B L"],
        lengths: Int[Tensor, " B"] | None = None,
        sigma: Float[Tensor, " B"] | None = None,
        *,
        hidden_states: Literal[True],
    ) -> tuple[Float[Tensor, "B L V"], list[Float[Tensor, "B L D"]]]: ...

    def forward(
        self,
        ids: Tensor,
        lengths: Tensor | None = None,
        sigma: Tensor | None = None,
        *,
        hidden_states: bool = False,
    ) -> Tensor | tuple[Tensor, list[Tensor]]:
        """Logits (B, L, V); with `hidden_states` also n_layer + 1 tensors (B, L, D).

        `ids` are of any integer type, on the network's device. `lengths` (B,) gives the length of
        each row padded on the right: padding then has no effect. `sigma` (B,) is the noise level,
        for networks with time conditioning; None means clean. Hidden states are the embedding, then
        the residual of each layer, then the input of the head; they take a second pass. Raises
        `UsageError` for ids or lengths of another shape or type.
        """
        xt, lengths = self._judge(ids, lengths)
        logits: Tensor = self.backbone(xt, sigma, lengths)
        if not hidden_states:
            return logits
        return logits, self.backbone.hidden_states(xt, sigma, lengths)

    def features(
        self,
        ids: Int[Tensor, "B L"],
        lengths: Int[Tensor, " B"] | None = None,
        sigma: Float[Tensor, " B"] | None = None,
    ) -> Float[Tensor, "B L D"]:
        """The input of the head, (B, L, D), with gradients.

        For a network that reads both strands, [s(x), R s(rc x)] concatenated. Arguments as in
        `forward`.
        """
        xt, lengths = self._judge(ids, lengths)
        return self.backbone.features(xt, sigma, lengths)

    @own_defaults()
    def new_head(self, n_out: int, *, bias: bool = True, seed: int = 1) -> nn.Linear:
        """Create a `torch.nn.Linear` from the width of `features` to `n_out`, initialised by
        `seed`.

        It is on the network's device, and not part of the network.
        """
        at = next(self.backbone.parameters())
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return nn.Linear(self.width, n_out, bias=bias).to(at.device)

    def _judge(self, ids: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor | None]:
        if ids.dtype.is_floating_point or ids.dtype.is_complex or ids.dtype == torch.bool:
            raise UsageError(f"ids are {ids.dtype}, not whole numbers", fix="give ids.long()")
        if ids.ndim != 2:
            what = f"ids have the shape {tuple(ids.shape)}, not (batch, length)"
            raise UsageError(what, fix="give ids[None] for one sequence")
        if lengths is None:
            return ids.long(), None
        if lengths.dtype.is_floating_point or lengths.shape != ids.shape[:1]:
            what = f"lengths are {tuple(lengths.shape)} {lengths.dtype}, not a whole number a row"
            raise UsageError(what, fix="give lengths (B,); a noise level is sigma=")
        return ids.long(), lengths.long()
