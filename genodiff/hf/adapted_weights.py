"""The weights of layers that an adapter of `peft` has wrapped, as the kernels take them.

Our kernels are handed weights and call no layers. A wrapped layer's weight is what it does to the
unit vectors: so LoRA, DoRA, LoHa, IA³ and what else is linear are read by one rule, under autograd.
`peft`'s dropout falls on the unit vectors too: it then drops an input in all positions of a step.
"""

import sys
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ADAPTED = ["in_proj", "out_proj"]
"""Layers that an adapter without `target_modules` is put on: the mixer's two projections."""


class ReadLayer(NamedTuple):
    """A wrapped linear layer as its weight and bias."""

    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


def is_wrapped(layer: nn.Module) -> bool:
    """Whether an adapter of `peft` stands around a layer."""
    return hasattr(layer, "base_layer")


def read_linear(layer: nn.Module) -> nn.Linear | ReadLayer:
    """A linear layer, or what a wrapped one comes to."""
    if not is_wrapped(layer):
        return layer  # type: ignore[return-value]
    base = layer.get_base_layer()  # type: ignore[operator]
    units = torch.eye(base.in_features, device=base.weight.device, dtype=base.weight.dtype)
    with torch.autocast(units.device.type, enabled=False):
        rows, bias = layer(units), None
        if base.bias is not None:
            (bias,) = layer(units.new_zeros(1, len(units)))
            rows = rows - bias
    return ReadLayer(rows.t().contiguous(), bias)


def read_table(layer: nn.Module) -> Tensor:
    """The table (V, D) of an embedding."""
    if not is_wrapped(layer):
        return layer.weight  # type: ignore[return-value]
    base = layer.get_base_layer()  # type: ignore[operator]
    found: Tensor = layer(torch.arange(base.num_embeddings, device=base.weight.device))
    return found


def read_taps(layer: nn.Module) -> tuple[Tensor, Tensor | None]:
    """The weight (E, taps) of a convolution of each channel by itself, and its bias.

    Raises `NotImplementedError` for a wrapped one: what `peft` puts there mixes the channels.
    """
    if is_wrapped(layer):
        what = "an adapter on conv1d, whose channels are apart; leave it out of target_modules"
        raise NotImplementedError(what)
    return layer.weight.squeeze(1), layer.bias  # type: ignore[operator, return-value]


def name_adapted_layers(model_type: str) -> None:
    """Give PEFT, where it is imported, the layers of `model_type` for `target_modules=None`.

    PEFT keeps one table for each kind of adapter. Those that adapt what LoRA adapts are extended.
    """
    constants = sys.modules.get("peft.utils.constants")
    if constants is None:
        return
    ending = "_TARGET_MODULES_MAPPING"
    tables = {name: table for name, table in vars(constants).items() if name.endswith(ending)}
    lora = tables[f"TRANSFORMERS_MODELS_TO_LORA{ending}"]
    for table in tables.values():
        if isinstance(table, dict) and table.get("bert") == lora["bert"]:
            table.setdefault(model_type, ADAPTED)
    ia3 = "TRANSFORMERS_MODELS_TO_IA3_{}_MODULES_MAPPING"
    for name, layers in (("TARGET", ADAPTED), ("FEEDFORWARD", ADAPTED[1:])):
        vars(constants).get(ia3.format(name), {}).setdefault(model_type, layers)
