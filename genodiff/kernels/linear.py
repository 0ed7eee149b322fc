"""A linear layer: in C, with the same bits for any number of threads, where the scan runs in C;
else torch's.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from genodiff.kernels import gemm
from genodiff.kernels.library import fits
from genodiff.kernels.native import native_linear
from genodiff.kernels.scan import chosen


def linear(
    x: Float[Tensor, "*rows K"],
    weight: Float[Tensor, "N K"],
    bias: Float[Tensor, " N"] | None = None,
) -> Float[Tensor, "*rows N"]:
    """W x + b."""
    if (
        fits(x, weight, bias)
        and not torch.is_autocast_enabled("cpu")
        and chosen(device="cpu").name == "native"
    ):
        return native_linear(x.reshape(-1, x.shape[-1]), weight, bias).view(
            *x.shape[:-1], len(weight)
        )
    return gemm.linear(x, weight, bias)
