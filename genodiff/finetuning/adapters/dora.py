"""DoRA: the rows' lengths and their directions apart, m ⊙ V / |V| with V = W + s B A.

|V| counts as a constant in gradients, as in the source, where m and the rank alone are trained. An
all-zero row stays so. Source: Liu et al., 2024, arXiv 2402.09353.
"""

from jaxtyping import Float
from torch import Tensor, nn

from genodiff.backbones.backbone import InitialValues
from genodiff.finetuning.adapters import ADAPTERS
from genodiff.finetuning.adapters.lora import Lora, LoraOptions


@ADAPTERS.register("dora")
class Dora(Lora):
    """m ⊙ V / |V|, m of each output."""

    def __init__(self, weight: Tensor, draws: InitialValues, options: LoraOptions) -> None:
        super().__init__(weight, draws, options)
        self.length = nn.Parameter(weight.norm(dim=1, keepdim=True).float())

    def forward(self, weight: Float[Tensor, "out inp"]) -> Float[Tensor, "out inp"]:
        """m ⊙ V / |V|."""
        turned = super().forward(weight)
        norm = turned.detach().norm(dim=1, keepdim=True)
        return self.length / norm.where(norm > 0, norm.new_ones(())) * turned
