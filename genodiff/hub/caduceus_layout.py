"""A Caduceus of ours as its authors would have saved it, fused or unfused.

On both strands, published `fused_add_norm: true` means that every other block reads the strands
exchanged. With R the flip of positions and channels, R M R is again a mixer: its two directions
change places and its outer channels are read from the other end. So a network of one form is a
network of the other with other numbers in its even blocks, and the same logits.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from genodiff.backbones.caduceus import CaduceusSettings
from genodiff.errors import CheckpointError
from genodiff.hub.caduceus_names import map_names
from genodiff.hub.mixer_names import reshape_as_published
from genodiff.hub.vocabulary import PublishedVocabulary

MASKED_LM, CLASSIFIER, BARE = "CaduceusForMaskedLM", "CaduceusForSequenceClassification", "Caduceus"

_INITIALIZER = {
    "initializer_range": 0.02,
    "n_residuals_per_layer": 1,
    "rescale_prenorm_residual": True,
}
_TIME_STEPS = {
    "dt_init": "random",
    "dt_init_floor": 1e-4,
    "dt_max": 0.1,
    "dt_min": 1e-3,
    "dt_scale": 1.0,
    "use_fast_path": True,
}


def exchange_form(
    settings: CaduceusSettings, tensors: Mapping[str, Tensor]
) -> tuple[CaduceusSettings, dict[str, Tensor]]:
    """The same function with `alternate_strands` the other way round.

    Raises `CheckpointError` where there is none.
    """
    if settings.strands != "paired":
        raise CheckpointError(
            "only networks on both strands have a fused form of their own",
            fix="leave the form as it is",
        )
    if not settings.bidirectional or settings.n_layer % 2:
        why = (
            "reads one direction only"
            if not settings.bidirectional
            else f"has an odd number of layers ({settings.n_layer})"
        )
        form = "fused" if settings.alternate_strands else "unfused"
        raise CheckpointError(
            f"the network {why}: it exists in one form only", fix=f"export it with --{form}"
        )
    out: dict[str, Tensor] = {}
    for name, x in tensors.items():
        if name.startswith("blocks.") and int(name.split(".")[1]) % 2 == 0:
            name, x = _mirrored(name, x, settings.tie_directions)
        out[name] = x
    return settings.model_copy(update={"alternate_strands": not settings.alternate_strands}), out


def _mirrored(name: str, x: Tensor, tied: bool) -> tuple[str, Tensor]:
    """A tensor of the block R N, R M R, from one of N, M: its name and its numbers."""
    block, _, rest = name.partition(".mixer.")
    if not rest:  # the norm
        return name, x.flip(0).contiguous()
    part, _, kind = rest.partition(".")
    if part in ("ahead", "back"):
        return f"{block}.mixer.{'back' if part == 'ahead' else 'ahead'}.{kind}", x
    flipped = (
        x.flip(1)
        if part.startswith("in_proj") and kind == "weight"
        else x
        if part.startswith("in_proj")
        else x.flip(0)
    )
    if not tied:
        part = part.removesuffix("_back") if part.endswith("_back") else f"{part}_back"
    return f"{block}.mixer.{part}.{kind}", flipped.contiguous()


def make_published_state(
    settings: CaduceusSettings,
    tensors: Mapping[str, Tensor],
    vocabulary: PublishedVocabulary,
    architecture: str = MASKED_LM,
    score: Tensor | None = None,
) -> dict[str, Tensor]:
    """The tensors of a published file, with buffers and without tied ones.

    Rows stand in the published order.
    """
    paired = settings.strands == "paired"
    prefix = "backbone." if architecture == BARE else "caduceus.backbone."
    names = map_names(settings, prefix, submodules=paired and not settings.alternate_strands)
    state = {}
    for here, theirs in names.items():
        x = vocabulary.outwards(tensors[here]) if here in ("embedding", "head") else tensors[here]
        state[theirs] = reshape_as_published(theirs, x).contiguous()
    complement = vocabulary.complement()
    if paired and complement is not None:
        state[f"{prefix}embeddings.word_embeddings.complement_map"] = torch.tensor(complement)
        if architecture == MASKED_LM:
            state["lm_head.complement_map"] = torch.tensor(complement)
    if score is not None:
        state["score.weight"] = score
    return state


def make_published_config(
    settings: CaduceusSettings,
    vocabulary: PublishedVocabulary,
    given: Mapping[str, Any],
    architecture: str,
    fused: bool,
) -> dict[str, Any]:
    """The published config of a network; `given` is that of its source, where it has one."""
    s = settings
    complement = vocabulary.complement() or range(vocabulary.size)
    ssm = {
        **_TIME_STEPS, "bias": s.proj_bias, "conv_bias": s.conv_bias, "d_conv": s.d_conv,
        "d_state": s.d_state, "dt_rank": s.dt_rank,
        "expand": s.expand,
    }  # fmt: skip
    config: dict[str, Any] = {
        "architectures": [architecture],
        "bidirectional": s.bidirectional,
        "bidirectional_strategy": s.bidirectional_strategy if s.bidirectional else None,
        "bidirectional_weight_tie": s.tie_directions,
        "complement_map": {str(i): int(c) for i, c in enumerate(complement)},
        "d_model": s.d_model,
        "fused_add_norm": fused,
        "initializer_cfg": _INITIALIZER,
        "model_type": "caduceus",
        "n_layer": s.n_layer,
        "norm_epsilon": s.norm_eps,
        "pad_vocab_size_multiple": 8,
        "rcps": s.strands == "paired",
        "residual_in_fp32": False,
        "rms_norm": s.norm == "rms",
        "ssm_cfg": ssm,
        "torch_dtype": "float32",
        "transformers_version": "4.38.1",
        "vocab_size": vocabulary.size,
    }
    if not s.tied_head:
        config["tie_word_embeddings"] = False
    return dict(sorted({**(given or config), "fused_add_norm": fused}.items()))
