"""Names of published tensors and ours: tables of rows (pattern of ours, theirs), read both ways.

Parameters and their shapes are those of the network itself, built without memory. A published
conv1d.weight is (E, 1, K), here it is (E, K). With tied directions in_proj and out_proj are
published once, under mamba_fwd; a tied head is absent.

Source of DiT and DiMamba: https://github.com/kuleshov-group/mdlm and discrete-diffusion-guidance
(Apache-2.0), by their tensors; our own code.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from genodiff.backbones.backbone import BackboneSettings
from genodiff.errors import CheckpointError

BELONG = "check that config and weights belong together"

DIT_EMBEDDING, WORDS = "vocab_embed.embedding", "embeddings.word_embeddings.weight"

TABLE = "rotary_emb.inv_freq"
"""A buffer of published DiTs: the frequencies of their rotary positions, 10000^(−2m/h)."""

Rows = tuple[tuple[str, str], ...]
"""A name of ours passes all rows in order; then the fields in braces are filled in."""

_MIXER: Rows = (
    (r"\.mixer\.(in|out)_proj\.", r".mixer{mixer}.mamba_fwd.\1_proj."),
    (r"\.mixer\.(in|out)_proj_back\.", r".mixer{mixer}.mamba_rev.\1_proj."),
    (r"\.mixer\.ahead\.", ".mixer{mixer}.mamba_fwd."),
    (r"\.mixer\.back\.", ".mixer{mixer}.mamba_rev."),
    (r"\.conv_(weight|bias)$", r".conv1d.\1"),
    (r"\.dt_(weight|bias)$", r".dt_proj.\1"),
)
_CONDITION: Rows = (
    (r"^condition\.level\.first\.", "{prefix}sigma_map.mlp.0."),
    (r"^condition\.level\.second\.", "{prefix}sigma_map.mlp.2."),
    (r"^condition\.label\.embedding$", "{prefix}cond_map.embedding_table.weight"),
    (r"\.modulation\.", ".adaLN_modulation."),
)
_STACK: Rows = (
    (r"^embedding$", "{prefix}{stem}embeddings.word_embeddings{table}.weight"),
    (r"^blocks\.", "{prefix}{stem}layers."),
    (r"\.norm\.", ".norm{norm}."),
    (r"^final_norm\.", "{prefix}{stem}norm_f{norm}."),
)
CADUCEUS: Rows = (*_MIXER, *_STACK, (r"^head$", "lm_head.weight"))
DIMAMBA: Rows = (
    *_MIXER, *_CONDITION, *_STACK,
    (r"^final_modulation\.", "{prefix}{stem}adaLN_modulation_final."),
    (r"^head$", "{prefix}model.lm_head.weight"),
)  # fmt: skip
DIT: Rows = (
    *_CONDITION,
    (r"^embedding$", "{prefix}" + DIT_EMBEDDING),
    (r"^blocks\.", "{prefix}blocks."),
    (r"\.attention_norm\.", ".norm1."),
    (r"\.attention\.(qkv|out)\.", r".attn_\1."),
    (r"\.mlp_norm\.", ".norm2."),
    (r"\.mlp_in\.", ".mlp.0."),
    (r"\.mlp_out\.", ".mlp.2."),
    (r"^final_norm\.", "{prefix}output_layer.norm_final."),
    (r"^final_modulation\.", "{prefix}output_layer.adaLN_modulation."),
    (r"^head$", "{prefix}output_layer.linear.weight"),
    (r"^head_bias$", "{prefix}output_layer.linear.bias"),
)


@lru_cache(maxsize=8)
def list_shapes(settings: BackboneSettings, rows: int = 1) -> Mapping[str, tuple[int, ...]]:
    """The shape of each parameter of a network with `rows` tokens, by its name here."""
    try:
        with torch.device("meta"):
            network = settings.build(rows, tuple(range(rows)))
    except RuntimeError as fault:
        raise CheckpointError(f"has sizes that no network has: {fault}", fix=BELONG) from None
    return {name: tuple(x.shape) for name, x in network.named_parameters()}


def translate_names(settings: BackboneSettings, rows: Rows, **fields: str) -> dict[str, str]:
    """Parameter name here → published name, of all parameters that have one.

    `fields`: `prefix` before all names, `stem` before those of the blocks; what wraps a module in
    `table` (of words), `norm` and `mixer`.
    """
    filled, found = defaultdict(str, fields), {}
    for here in list_shapes(settings):
        theirs = here
        for ours, published in rows:
            theirs = re.sub(ours, published, theirs)
        if theirs != here:
            found[here] = theirs.format_map(filled)
    return found


def order_rows(
    tensors: Mapping[str, Tensor], move: Callable[[Tensor], Tensor]
) -> dict[str, Tensor]:
    """The tensors with `move`, into or out of a vocabulary, of those that have a row a token."""
    rows = ("embedding", "head", "head_bias")
    return {name: move(x) if name in rows else x for name, x in tensors.items()}


def judge_depth(n_layer: int, state: Mapping[str, Any]) -> None:
    """Raises `CheckpointError` for more layers than tensors, before names are made of them."""
    if n_layer > len(state):
        raise CheckpointError(f"lacks tensors of {n_layer} layers: corrupt", fix=BELONG)


def find_tied_name(name: str) -> str | None:
    """The name that a tied projection of the backward direction is stored under.

    None for any other tensor.
    """
    twin = name.replace(".mamba_rev.", ".mamba_fwd.")
    return twin if twin != name and (".in_proj." in name or ".out_proj." in name) else None


def list_parameters(names: Iterable[str], *, tied_head: bool = False) -> list[str]:
    """The names of a state dict's parameters in its order, each tied tensor once.

    A list of averages (EMA) is of these.
    """
    names = list(names)
    return [
        name
        for name in names
        if not name.endswith((TABLE, "complement_map"))
        and find_tied_name(name) not in names
        and not (tied_head and name.endswith("lm_head.weight"))
    ]


def reshape_as_published(theirs: str, x: Tensor) -> Tensor:
    """A tensor of ours in the shape that the published name `theirs` has."""
    return x.unsqueeze(1) if theirs.endswith("conv1d.weight") else x


def take_tensors(
    state: Mapping[str, Tensor], names: Mapping[str, str], settings: BackboneSettings, rows: int
) -> dict[str, Tensor]:
    """The tensors of `state` under our names (`names`: ours → published), float32 or wider.

    `rows` counts the tokens. A tied duplicate is not needed; where it is present it must agree.
    Raises `CheckpointError` for a missing, foreign or misshapen tensor.
    """
    ours: dict[str, Tensor] = {}
    shapes = list_shapes(settings, rows)
    for here, theirs in names.items():
        x = state.get(theirs)
        if x is None:
            raise CheckpointError(f"lacks '{theirs}'", fix=BELONG)
        x = x.squeeze(1) if theirs.endswith("conv1d.weight") and x.ndim == 3 else x
        if tuple(x.shape) != shapes[here]:
            what = f"'{theirs}' has the shape {tuple(x.shape)}, not {shapes[here]}"
            raise CheckpointError(what, fix=BELONG)
        ours[here] = x if x.dtype == torch.float64 else x.float()
    wanted = set(names.values())
    for name in sorted(state.keys() - wanted):
        tied = "head" not in names and name.endswith("lm_head.weight")
        twin = names["embedding"] if tied else find_tied_name(name)
        if twin not in wanted:
            raise CheckpointError(f"has no place for '{name}'", fix=BELONG)
        if not torch.equal(state[name], state[twin]):
            what = f"'{name}' should equal '{twin}', to which the config ties it"
            raise CheckpointError(what, fix=BELONG)
    return ours
