"""Folders as the authors of MDLM publish their networks, with small random weights."""

import json
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from genodiff.backbones.dimamba import DiMambaSettings
from genodiff.backbones.dit import DiTSettings
from genodiff.hub.mdlm_layout import make_mdlm_config, to_published_mdlm
from tests.tiny_networks import perturb

DIT = DiTSettings(d_model=24, n_layer=2, n_head=3, d_cond=16, time_conditioning=True)
SMALL = DiMambaSettings(d_model=16, n_layer=2, d_cond=8, d_state=4, dropout=0.1)
APART = {"residual": False, "dropout": 0.0}
MAMBAS = {
    "adaln": SMALL,
    "adaln, tied": SMALL.model_copy(update={"tie_head": True}),
    "add": SMALL.model_copy(update={"conditioning": "add", "d_cond": 16, **APART}),
    "concat": SMALL.model_copy(update={"conditioning": "concat", "spare_rows": 8, **APART}),
}


def network(shape: Any, rows: int = 12, seed: int = 0) -> Any:
    return perturb(shape.build(rows, None, seed=seed).eval(), seed, 0.2)


def state_of(model: Any) -> dict[str, Tensor]:
    return {
        n: x.detach().clone().contiguous()
        for n, x in to_published_mdlm(model.settings, dict(model.named_parameters())).items()
    }


def write(folder: Path, model: Any, **changes: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    config = make_mdlm_config(model.settings, model.vocab_size, 64) | changes
    (folder / "config.json").write_text(json.dumps(config))
    save_file(state_of(model), folder / "model.safetensors", metadata={"format": "pt"})
    return folder
