"""LoRA: W + s B A of rank r. B is zero at first, and s = alpha / r, or alpha / √r with `scale`.

Sources: Hu et al., 2021, arXiv 2106.09685; of √r, Kalajdzievski, 2023, arXiv 2312.03732.
"""

from math import sqrt
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from genodiff.backbones.backbone import InitialValues
from genodiff.finetuning.adapters import ADAPTERS, Adapter, AdapterOptions


class LoraOptions(AdapterOptions):
    """Rank and scale."""

    r: Annotated[int, Field(ge=1, le=4096, description="rank, at most a weight's shorter side")] = 8
    alpha: Annotated[float, Field(gt=0, description="what the change is multiplied by, over r")] = (
        16.0
    )
    scale: Annotated[Literal["r", "sqrt"], Field(description="alpha over r, or over its root")] = (
        "r"
    )


@ADAPTERS.register("lora")
class Lora(Adapter):
    """W + s B A."""

    options: ClassVar[type[AdapterOptions]] = LoraOptions

    def __init__(self, weight: Tensor, draws: InitialValues, options: LoraOptions) -> None:
        super().__init__(weight, draws, options)
        outputs, inputs = weight.shape
        rank = min(options.r, outputs, inputs)
        bound = 1 / sqrt(inputs)
        self.down = nn.Parameter(draws.uniform(rank, inputs, low=-bound, high=bound).float())
        self.up = nn.Parameter(torch.zeros(outputs, rank))
        self.factor = options.alpha / (rank if options.scale == "r" else sqrt(rank))

    def forward(self, weight: Float[Tensor, "out inp"]) -> Float[Tensor, "out inp"]:
        """W + s B A."""
        return weight + self.factor * (self.up @ self.down)
