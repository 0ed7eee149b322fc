"""Folders as the authors of MDLM publish their networks, with small random weights."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from genodiff.backbones.dimamba import DiMambaSettings
from genodiff.backbones.dit import DiTSettings
from genodiff.hub.mdlm_layout import make_mdlm_config, to_published_mdlm

DIT = DiTSettings(d_model=24, n_layer=2, n_head=3, d_cond=16, time_conditioning=True)
MAMBAS = {
    "adaln": DiMambaSettings(d_model=16, n_layer=2, d_cond=8, d_state=4, dropout=0.1),
    "adaln, tied": DiMambaSettings(
        d_model=16, n_layer=2, d_cond=8, d_state=4, tie_head=True, dropout=0.1
    ),
    "add": DiMambaSettings(
        d_model=16, n_layer=2, conditioning="add", d_cond=16, d_state=4, residual=False
    ),
    "concat": DiMambaSettings(d_model=16, n_layer=2, conditioning="concat", d_cond=8, d_state=4,
                              residual=False, spare_rows=8),
}  # fmt: skip


def network(shape: Any, rows: int = 12, seed: int = 0) -> Any:
    model = shape.build(rows, None, seed=seed).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.2)
    return model


def state_of(model: Any) -> dict[str, Tensor]:
    return {
        n: x.detach().clone().contiguous()
        for n, x in to_published_mdlm(model.settings, dict(model.named_parameters())).items()
    }


def write(folder: Path, model: Any, **changes: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(
        json.dumps(make_mdlm_config(model.settings, model.vocab_size, 64) | changes)
    )
    save_file(state_of(model), folder / "model.safetensors", metadata={"format": "pt"})
    return folder
