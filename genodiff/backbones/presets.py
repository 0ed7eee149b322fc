"""Named shapes of Caduceus. Parameter counts are with the padded DNA vocabulary of 16."""

from typing import Literal

from genodiff.backbones.caduceus import CaduceusSettings

_SHAPES = {
    "tiny": (64, 2),  # for a demonstration in minutes
    "470k": (118, 4),  # 470,702
    "1.9m": (256, 4),  # 1,934,592
    "7.7m": (256, 16),  # 7,725,312
}

_STRANDS: tuple[tuple[str, Literal["paired", "single"]], ...] = (("ps", "paired"), ("ph", "single"))

PRESETS: dict[str, CaduceusSettings] = {
    f"caduceus-{letters}-{name}": CaduceusSettings(d_model=d_model, n_layer=n_layer, strands=strands)
    for letters, strands in _STRANDS
    for name, (d_model, n_layer) in _SHAPES.items()
}

# Read one way, for autoregressive models; mamba-470k (468,608) is the partner of caduceus-*-470k at equal parameters.
_ONE_WAY = {"mamba-tiny": (72, 2), "mamba-470k": (128, 4)}
for _name, (_width, _depth) in _ONE_WAY.items():
    PRESETS[_name] = CaduceusSettings(d_model=_width, n_layer=_depth, strands="single", bidirectional=False)
