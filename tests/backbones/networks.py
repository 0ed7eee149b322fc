"""Small networks with weights that hide nothing: norms away from one, biases away from zero."""

import torch
from torch import Tensor

from genodiff.backbones.caduceus import Caduceus, CaduceusSettings

COMPLEMENT = (0, 1, 2, 3, 4, 5, 6, 10, 9, 8, 7, 11, 12, 13, 14, 15)  # of the padded DNA alphabet
PAD = 4


def network(seed: int = 0, *, scale: float = 1.0, **settings: object) -> Caduceus:
    """A Caduceus of width 12 with two blocks unless told otherwise, every weight perturbed."""
    shape = CaduceusSettings.parse({"d_model": 12, "n_layer": 2, "d_state": 4} | settings)
    model = shape.build(16, COMPLEMENT, seed=seed).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.add_(noise * (0.5 if name == "embedding" else 0.1) * scale)
    return model


def bases(batch: int, length: int, seed: int = 0) -> Tensor:
    """Random ids among mask, bases, N and special tokens."""
    generator = torch.Generator().manual_seed(seed)
    return torch.tensor([3, 7, 8, 9, 10, 7, 8, 9, 10, 11, 6])[
        torch.randint(0, 11, (batch, length), generator=generator)
    ]


def reverse_complement(x: Tensor) -> Tensor:
    return torch.tensor(COMPLEMENT)[x].flip(1)
