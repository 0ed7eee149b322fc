"""A linear layer: in C, with the same bits for any number of threads, or with torch's products."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from genodiff.kernels import gemm, library
from genodiff.kernels.dispatch import Implementation, Operation, accept_all
from genodiff.kernels.native.linear import native_linear


def _native_accepts(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    return library.fits(x, weight, bias) and not torch.is_autocast_enabled("cpu")


LINEAR = Operation(
    Implementation("native", native_linear, _native_accepts),
    Implementation("torch", gemm.linear, accept_all),
    recorded=F.linear,
)


def linear(
    x: Float[Tensor, "*rows K"],
    weight: Float[Tensor, "N K"],
    bias: Float[Tensor, " N"] | None = None,
) -> Float[Tensor, "*rows N"]:
    """W x + b."""
    y: Tensor = LINEAR(x, weight, bias)
    return y
