"""The network of a model as a `torch.nn.Module` for one's own training loop."""

from typing import Literal, overload

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from genodiff.backbones.backbone import Backbone
from genodiff.errors import UsageError
from genodiff.kernels.defaults import own_defaults


class Network(nn.Module):
    """Token ids (B, L) → logits (B, L, V), in any mode, on any device, under autograd.

    It shares its weights with the `genodiff.Model` that it came from: train it, and the model
    samples from what it has learnt. `state_dict`, `.to(device)`, `.train()` and `copy.deepcopy`
    work as for any module.

    `torch.export.export` takes it with dynamic batch and length, with `lengths` and with
    `hidden_states`. The program holds plain torch operations in place of our kernels: equal up to
    float error, slower, and with memory of L · E · N numbers a layer. `torch.jit.trace` records
    the length that it was shown.
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
        """V: the rows of the head, which may be more than there are tokens."""
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
        each row where rows are padded on the right: padding then changes nothing. `sigma` (B,) is
        the noise level, for networks that are told it; None means clean. Hidden states are the
        embedding, then what each layer adds, then what the head reads; they take a second pass.
        Raises `UsageError` for ids of another shape or type.
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
        """What the head reads, (B, L, D), with gradients.

        Of a network that reads both strands, [s(x), R s(rc x)] side by side. Arguments as of
        `forward`.
        """
        xt, lengths = self._judge(ids, lengths)
        return self.backbone.features(xt, sigma, lengths)

    @own_defaults()
    def new_head(self, n_out: int, *, bias: bool = True, seed: int = 1) -> nn.Linear:
        """A fresh `torch.nn.Linear` from the width of `features` to `n_out`, drawn from `seed`.

        It stands on the network's device, and is no part of the network.
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
        return ids.long(), None if lengths is None else lengths.long()
