"""Clean sequences, as a loss or a bound takes them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Clean:
    """Clean tokens and which of them count."""

    x0: Int[Tensor, "B L"]
    maskable: Bool[Tensor, "B L"]  # those that are masked, predicted and paid for
    weight: Float[Tensor, "B L"] | None = None  # of each position's loss; None: 1 everywhere
    lengths: Int[Tensor, " B"] | None = None  # where windows are padded on the right

    @property
    def n(self) -> Int[Tensor, " B"]:
        """How many tokens of each window are maskable."""
        return self.maskable.sum(-1)

    def logits(
        self,
        denoiser: Callable[..., Tensor],
        xt: Int[Tensor, "B L"],
        sigma: Float[Tensor, " B"],
        **more: Any,
    ) -> Float[Tensor, "*positions V"]:
        """Those of `denoiser` for xt; it is told the lengths only where there are any.

        `more` are arguments that not every denoiser takes, such as `rows`.
        """
        told = (xt, sigma) if self.lengths is None else (xt, sigma, self.lengths)
        return denoiser(*told, **more)
