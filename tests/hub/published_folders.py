"""Folders as the authors of Caduceus and of MDLM publish their networks, made here: small random
weights, tied tensors left out.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from genodiff.alphabet import DNA
from genodiff.backbones.caduceus import Caduceus
from genodiff.backbones.dimamba import DiMambaSettings
from genodiff.backbones.dit import DiTSettings
from genodiff.hub.caduceus import map_names, read_published_settings
from genodiff.hub.mdlm_layout import make_mdlm_config, to_published_mdlm
from genodiff.hub.tensor_names import reshape_as_published
from tests.commands import exit_code
from tests.tiny_networks import perturb

COMPLEMENT = DNA.complement or ()
CONFIG: dict[str, Any] = {
    "architectures": ["CaduceusForMaskedLM"], "model_type": "caduceus", "d_model": 12,
    "n_layer": 2, "vocab_size": 16,
    "pad_vocab_size_multiple": 8, "rcps": True, "fused_add_norm": True, "bidirectional": True,
    "bidirectional_strategy": "add",
    "bidirectional_weight_tie": True, "rms_norm": True, "residual_in_fp32": False,
    "norm_epsilon": 1e-5,
    "ssm_cfg": {"d_state": 4, "d_conv": 4, "expand": 2, "dt_rank": "auto", "conv_bias": True,
    "bias": False},
    "complement_map": {str(i): COMPLEMENT[i] for i in range(16)}, "torch_dtype": "float32",
    "transformers_version": "4.38.1",
}  # fmt: skip

PLANT = {
    "vocab_size": 8, "residual_in_fp32": True,
    "complement_map": {"0": 0, "1": 1, "2": 2, "3": 6, "4": 5, "5": 4, "6": 3, "7": 7},
}  # fmt: skip

DIT = DiTSettings(d_model=24, n_layer=2, n_head=3, d_cond=16, time_conditioning=True)
SMALL = DiMambaSettings(d_model=16, n_layer=2, d_cond=8, d_state=4, dropout=0.1)
APART = {"residual": False, "dropout": 0.0}
MAMBAS = {
    "adaln": SMALL,
    "adaln, tied": SMALL.model_copy(update={"tie_head": True}),
    "add": SMALL.model_copy(update={"conditioning": "add", "d_cond": 16, **APART}),
    "concat": SMALL.model_copy(update={"conditioning": "concat", "spare_rows": 8, **APART}),
}


def network(config: dict[str, Any], seed: int = 0) -> Caduceus:
    """The network of a published config, every weight random."""
    rows = config["vocab_size"]
    complement = tuple(config["complement_map"][str(i)] for i in range(rows))
    model = read_published_settings(config).build(rows, complement, seed=seed).eval()
    return perturb(model, seed, 0.1, 0.5)


def state_of(model: Caduceus, config: dict[str, Any]) -> dict[str, Tensor]:
    """The network's tensors as its authors would save them, buffers included."""
    kind, paired = config["architectures"][0], bool(config.get("rcps"))
    prefix = "backbone." if kind == "Caduceus" else "caduceus.backbone."
    wrapped = paired and not config.get("fused_add_norm", True)
    names = map_names(model.settings, prefix, submodules=wrapped)
    state = {
        names[here]: reshape_as_published(names[here], p.detach().clone().contiguous())
        for here, p in model.named_parameters()
    }
    if paired:
        state[f"{prefix}embeddings.word_embeddings.complement_map"] = model.complement.clone()
    if paired and kind.endswith("LM"):
        state["lm_head.complement_map"] = model.complement.clone()
    if kind.endswith("SequenceClassification"):
        state = {n: x for n, x in state.items() if not n.startswith("lm_head.")}
        state["score.weight"] = torch.randn(config.get("num_labels", 2), model.settings.d_model)
    return state


def write_published(folder: Path, seed: int = 0, **changes: Any) -> Caduceus:
    """A published folder in safetensors; its network."""
    config = CONFIG | changes
    model = network(config, seed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(state_of(model, config), folder / "model.safetensors", metadata={"format": "pt"})
    return model


def make_mdlm(shape: Any, rows: int = 12, seed: int = 0) -> Any:
    return perturb(shape.build(rows, None, seed=seed).eval(), seed, 0.2)


def mdlm_state(model: Any) -> dict[str, Tensor]:
    return {
        n: x.detach().clone().contiguous()
        for n, x in to_published_mdlm(model.settings, dict(model.named_parameters())).items()
    }


def write_mdlm(folder: Path, model: Any, **changes: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    config = make_mdlm_config(model.settings, model.vocab_size, 64) | changes
    (folder / "config.json").write_text(json.dumps(config))
    save_file(mdlm_state(model), folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def change_state(folder: Path, change: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> None:
    """Write the weights of a folder again, as `change` makes them of what they are."""
    file = folder / "model.safetensors"
    save_file({name: x.contiguous() for name, x in change(load_file(file)).items()}, file)


def halve(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Every number in 16 bits."""
    return {n: x.half() if x.is_floating_point() else x for n, x in state.items()}


def sample_ids(batch: int = 3, length: int = 19, seed: int = 0) -> Tensor:
    """Random bases, masks and N."""
    generator = torch.Generator().manual_seed(seed)
    return torch.tensor([3, 7, 8, 9, 10, 7, 8, 9, 10, 11])[
        torch.randint(0, 10, (batch, length), generator=generator)
    ]


def same_logits(ours: Any, theirs: Any, ids: torch.Tensor | None = None) -> None:
    ids = sample_ids() if ids is None else ids
    with torch.no_grad():
        torch.testing.assert_close(ours(ids), theirs(ids), rtol=0, atol=0)


def assert_code(code: int, *words: str) -> None:
    assert exit_code(*words) == code
