"""Small networks with weights that hide nothing: norms away from one, biases away from zero."""

from typing import Any

import torch
from torch import Tensor

from genodiff.backbones.caduceus import Caduceus, CaduceusSettings
from genodiff.backbones.dimamba import DiMamba, DiMambaSettings
from genodiff.backbones.dit import DiT, DiTSettings

COMPLEMENT = (0, 1, 2, 3, 4, 5, 6, 10, 9, 8, 7, 11, 12, 13, 14, 15)  # of the padded DNA alphabet
PAD = 4
DIMAMBA_VOCABULARY = 12
DIT_VOCABULARY = 9
CADUCEUS_FORMS: list[dict[str, Any]] = [
    {"strands": "paired"},
    {"strands": "single"},
    {"strands": "paired", "alternate_strands": True},
    {
        "strands": "paired",
        "alternate_strands": True,
        "n_layer": 3,
        "norm": "layer",
        "proj_bias": True,
    },
    {"strands": "paired", "tie_directions": False, "bidirectional_strategy": "ew_multiply"},
    {"strands": "single", "bidirectional": False, "norm": "layer"},
    {
        "strands": "single",
        "tie_head": False,
        "conv_bias": False,
        "d_conv": 2,
        "expand": 1,
        "dt_rank": 3,
    },
]
DIMAMBA_FORMS: list[dict[str, Any]] = [
    {},
    {"n_classes": 3, "tie_head": True},
    {"conditioning": "add", "residual": False},
    {"conditioning": "concat"},
    {"conditioning": "concat", "tie_head": True, "spare_rows": 6, "residual": False},
    {"conditioning": "none", "time_conditioning": False},
    {"norm": "layer", "proj_bias": True, "tie_directions": False},
]
DIT_FORMS: list[dict[str, Any]] = [
    {},
    {"adaln": False, "norm": "rms"},
    {"causal": True},
    {"causal": True, "adaln": False, "tie_head": True},
    {"adaln": False, "qk_bias": True},
    {"causal": True, "qk_bias": True},
    {"mlp_ratio": 3},
    {"n_classes": 4, "time_conditioning": True, "norm": "rms"},
]


def perturb(model: Any, seed: int, size: float, embedding: float | None = None) -> Any:
    """The same network with every weight moved by a random number of this size."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=generator, dtype=p.dtype)
            p.add_(noise * (embedding if name == "embedding" and embedding else size))
    return model


def network(seed: int = 0, *, scale: float = 1.0, **settings: object) -> Caduceus:
    """A Caduceus of width 12 with two blocks unless told otherwise, every weight perturbed."""
    shape = CaduceusSettings.parse({"d_model": 12, "n_layer": 2, "d_state": 4} | settings)
    model = shape.build(16, COMPLEMENT, seed=seed).eval()
    return perturb(model, seed, 0.1 * scale, 0.5 * scale)


def dimamba(seed: int = 0, **changed: Any) -> DiMamba:
    """A DiMamba of width 12 with two blocks, every weight perturbed, in float64."""
    usual = {"d_model": 12, "n_layer": 2, "d_cond": 6, "d_state": 4}
    model = DiMambaSettings.parse(usual | changed).build(DIMAMBA_VOCABULARY, None, seed=seed)
    return perturb(model.eval().double(), seed, 0.2)


def dit(seed: int = 0, **settings: Any) -> DiT:
    """A DiT of width 16 with two blocks, every weight perturbed, in float64."""
    shape = DiTSettings.parse({"d_model": 16, "n_layer": 2, "n_head": 2, "d_cond": 8} | settings)
    return perturb(shape.build(DIT_VOCABULARY, None, seed=seed).eval().double(), seed, 0.3)


def bases(batch: int, length: int, seed: int = 0) -> Tensor:
    """Random ids among mask, bases, N and special tokens."""
    generator = torch.Generator().manual_seed(seed)
    return torch.tensor([3, 7, 8, 9, 10, 7, 8, 9, 10, 11, 6])[
        torch.randint(0, 11, (batch, length), generator=generator)
    ]


def reverse_complement(x: Tensor) -> Tensor:
    return torch.tensor(COMPLEMENT)[x].flip(1)
