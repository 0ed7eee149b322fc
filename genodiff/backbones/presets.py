"""Named shapes. Parameter counts of a few hundred thousand to millions are with the padded DNA
vocabulary of 16.

dit-small and dit-medium are the published text models (169,627,218 and 424,477,010 with GPT-2's
vocabulary and a mask, 50,258). dit-470k and dit-causal-470k have the size of caduceus-*-470k, for
comparisons at equal parameters.
"""

from typing import Literal

from genodiff.backbones.caduceus import CaduceusSettings
from genodiff.backbones.dimamba import DiMambaSettings
from genodiff.backbones.dit import DiTSettings

_SHAPES = {
    "tiny": (64, 2),  # 82,624: two layers, for first looks
    "83k": (32, 6),  # 82,912: the demo's; motifs under scattered masks need depth more than width
    "470k": (118, 4),  # 470,702
    "1.9m": (256, 4),  # 1,934,592
    "7.7m": (256, 16),  # 7,725,312
}

_STRANDS: tuple[tuple[str, Literal["paired", "single"]], ...] = (("ps", "paired"), ("ph", "single"))

_CADUCEUS = {
    f"caduceus-{letters}-{name}": CaduceusSettings(
        d_model=d_model, n_layer=n_layer, strands=strands
    )
    for letters, strands in _STRANDS
    for name, (d_model, n_layer) in _SHAPES.items()
}

_DIT_SHAPES = {
    "tiny": (512, 8, 8),  # 28,559,116 with 12 tokens
    "small": (768, 12, 12),  # 169,627,218 with 50,258
    "medium": (1024, 24, 16),  # 424,477,010 with 50,258
}

_DIT = {
    f"dit-{name}": DiTSettings(d_model=d_model, n_layer=n_layer, n_head=n_head)
    for name, (d_model, n_layer, n_head) in _DIT_SHAPES.items()
}

_SMALL = {
    name: DiTSettings(
        d_model=88, n_layer=5, n_head=4, adaln=False, norm="rms", causal=causal, qk_bias=True
    )  # 471,520
    for name, causal in (("dit-470k", False), ("dit-causal-470k", True))
}

# The default for text on a CPU: 1,254,536 with the 264 rows of the byte vocabulary.
_TEXT = {
    "dit-tiny-bytes": DiTSettings(
        d_model=128, n_layer=6, n_head=4, adaln=False, norm="rms", qk_bias=True
    )
}

# Read one way, for autoregressive models; mamba-470k (468,608) is the partner of caduceus-*-470k at
# equal parameters.
_ONE_WAY = {
    name: CaduceusSettings(d_model=d_model, n_layer=n_layer, strands="single", bidirectional=False)
    for name, (d_model, n_layer) in {"mamba-tiny": (72, 2), "mamba-470k": (128, 4)}.items()
}

_DIMAMBA = {
    "dimamba-470k": DiMambaSettings(d_model=88, n_layer=5, d_cond=64),  # 471,432
    "dimamba-4.8m": DiMambaSettings(
        d_model=256, n_layer=8
    ),  # 4,774,912 with 12 tokens: published for ten species
    "dimamba-tiny": DiMambaSettings(
        d_model=512, n_layer=14
    ),  # 28,407,552 with 12 tokens: published for text
}

PRESETS: dict[str, CaduceusSettings | DiTSettings | DiMambaSettings] = {
    **_CADUCEUS, **_ONE_WAY, **_DIT, **_SMALL, **_TEXT, **_DIMAMBA,
}  # fmt: skip

FIRST = {"caduceus": "caduceus-ps-470k", "dit": "dit-470k", "dimamba": "dimamba-470k"}
"""The preset of each kind that is taken where only the kind is named."""
