"""Folders as the authors' save_pretrained writes them, made here: small networks, tied tensors left
out.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from genodiff.alphabet import DNA
from genodiff.backbones.caduceus import Caduceus
from genodiff.hub.caduceus import map_names, read_published_settings
from genodiff.hub.tensor_names import reshape_as_published
from tests.commands import exit_code

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


def network(
    config: dict[str, Any],
    rows: int = 16,
    complement: tuple[int, ...] | None = COMPLEMENT,
    seed: int = 0,
) -> Caduceus:
    """The network of a published config, every weight random."""
    model = read_published_settings(config).build(rows, complement, seed=seed).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.add_(
                torch.randn(parameter.shape, generator=generator)
                * (0.5 if name == "embedding" else 0.1)
            )
    return model


def state_of(
    model: Caduceus, config: dict[str, Any], prefix: str = "caduceus.backbone."
) -> dict[str, Tensor]:
    """The network's tensors as its authors would save them, buffers included."""
    paired = bool(config.get("rcps"))
    names = map_names(
        model.settings, prefix, submodules=paired and not config.get("fused_add_norm", True)
    )
    state = {
        names[here]: reshape_as_published(names[here], p.detach().clone().contiguous())
        for here, p in model.named_parameters()
    }
    if paired:
        state[f"{prefix}embeddings.word_embeddings.complement_map"] = model.complement.clone()
        if prefix.startswith("caduceus."):
            state["lm_head.complement_map"] = model.complement.clone()
    return state


def write_published(folder: Path, seed: int = 0, **changes: Any) -> Caduceus:
    """A published folder in safetensors; its network."""
    config = CONFIG | changes
    model = network(config, seed=seed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(state_of(model, config), folder / "model.safetensors", metadata={"format": "pt"})
    return model


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
