"""The published DiTs of MDLM and UDLM as models of transformers.

The weights stand under their published names, and are lent to the network for each forward pass.
Source: Sahoo et al., 2024, arXiv 2406.07524; Schiff et al., 2024, arXiv 2412.10193.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig
from transformers.modeling_outputs import MaskedLMOutput

from genodiff.backbones.dit import DiT
from genodiff.backbones.kinds.dit import DiTSettings
from genodiff.errors import CheckpointError
from genodiff.hf.folders import judge_folder
from genodiff.hf.published_model import PublishedModel
from genodiff.hub.mdlm_config import TABLE, find_prefix
from genodiff.hub.mdlm_names import from_published_mdlm, make_rotary_table, map_mdlm_names
from genodiff.hub.published_network import blame_file, find_culprit, make_stand_ins
from genodiff.hub.weight_files import Weights

_PREFIX = "backbone."


class MDLMConfig(PreTrainedConfig):
    """The configuration of a published MDLM. Names and defaults are the published ones."""

    model_type: ClassVar[str] = "mdlm"
    attribute_map: ClassVar[dict[str, str]] = {
        "hidden_size": "hidden_dim",
        "num_hidden_layers": "n_blocks",
        "num_attention_heads": "n_heads",
    }

    vocab_size: int = 50258
    model_length: int = 1024
    hidden_dim: int = 768
    cond_dim: int = 128
    n_blocks: int = 12
    n_heads: int = 12
    dropout: float = 0.1
    time_conditioning: bool = False
    tie_word_embeddings: bool = False


class UDLMConfig(MDLMConfig):
    """The configuration of a published UDLM: with classes, where `cfg` is true."""

    model_type: ClassVar[str] = "udlm"

    cfg: bool = False
    cfg_num_classes: int = 0


def find_dit_settings(config: MDLMConfig) -> DiTSettings:
    """The shape of the network. Raises `ValueError` for what genodiff does not build."""
    classes = config.cfg_num_classes if getattr(config, "cfg", False) else 0
    given = {
        "d_model": config.hidden_dim, "n_layer": config.n_blocks, "n_head": config.n_heads,
        "d_cond": config.cond_dim, "n_classes": classes, "dropout": config.dropout,
        "time_conditioning": config.time_conditioning,
    }  # fmt: skip
    try:
        return DiTSettings.parse(given, error=CheckpointError)
    except CheckpointError as fault:
        raise ValueError(f"config: {fault}") from None


class LentWeights(nn.Module):
    """The weights of a network under other names; the network itself is not registered."""

    network: DiT

    def __init__(self, network: DiT, names: Mapping[str, str]) -> None:
        super().__init__()
        object.__setattr__(self, "network", network)
        self._places: list[tuple[nn.Module, str, nn.Module, str]] = []
        for here, theirs in names.items():
            path, _, leaf = here.rpartition(".")
            module, (place, name) = network.get_submodule(path), make_place(self, theirs)
            place.register_parameter(name, module.get_parameter(leaf))
            self._places.append((module, leaf, place, name))

    def lend(self) -> DiT:
        """The network with the weights that stand here now, in this module's mode."""
        for module, leaf, place, name in self._places:
            module._parameters[leaf] = place._parameters[name]
        return self.network.train(self.training)


def make_place(root: nn.Module, name: str) -> tuple[nn.Module, str]:
    """The module under `root` that is to hold `name`, made where it is missing; and the leaf."""
    *path, leaf = name.split(".")
    for part in path:
        if part not in root._modules:
            root.add_module(part, nn.Module())
        root = root.get_submodule(part)
    return root, leaf


class MDLM(PublishedModel):
    """Logits (B, L, vocab_size) of a partly masked text; `timesteps` is sigma, as published.

    Dropout is not applied in training: genodiff's own training gives it its draws.
    """

    config_class = MDLMConfig
    config: MDLMConfig
    base_model_prefix = "backbone"
    supports_gradient_checkpointing = False

    def __init__(self, config: MDLMConfig, **kwargs: Any) -> None:
        super().__init__(config)
        settings = find_dit_settings(config)
        network = DiT(settings=settings, vocab_size=config.vocab_size)
        self.backbone = LentWeights(network, map_mdlm_names(settings, ""))
        place, leaf = make_place(self.backbone, TABLE)
        place.register_buffer(leaf, make_rotary_table(settings))
        self.post_init()

    @classmethod
    def _read_folder(cls, folder: Path, config: Mapping[str, Any] | None) -> dict[str, Tensor]:
        return judge_folder(folder, config, (cls.config_class.model_type,), read_mdlm)

    def _init_weights(self, module: nn.Module) -> None:
        """Nothing: the network has drawn its weights, and a folder holds all of them."""

    def forward(
        self,
        input_ids: Tensor,
        timesteps: Tensor | None = None,
        cond: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        attention_mask: Tensor | None = None,
    ) -> Any:
        """Logits, and the mean cross-entropy (nats) over labels other than -100.

        `timesteps` (B,) is sigma, and is 0 where it is None or the network is not told the time.
        `cond` (B,) are classes. `attention_mask` is not read, as published. Hidden states are the
        residual stream: the embeddings, and after each block but the last; then what the head
        reads.
        """
        every = output_hidden_states
        every = self.config.output_hidden_states if every is None else every
        network = self.backbone.lend()
        sigma = None if timesteps is None else timesteps.flatten()
        states = network.hidden_states(input_ids, sigma, labels=cond) if every else []
        last = states[-1] if every else network.features(input_ids, sigma, labels=cond)
        logits = network.logits(last)
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        if self.config.return_dict if return_dict is None else return_dict:
            return MaskedLMOutput(loss=loss, logits=logits, hidden_states=tuple(states) or None)
        found: list[Any] = [] if loss is None else [loss]
        found += [logits, states] if every else [logits]
        return tuple(found) if len(found) > 1 else logits


class UDLM(MDLM):
    """Logits of a text under uniform noise, with a class of each row where the network has any."""

    config_class = UDLMConfig


def read_mdlm(file: Path, config: Mapping[str, Any], weights: Weights) -> dict[str, Tensor]:
    """The tensors of a published DiT, its rotary table included. Raises `CheckpointError`."""
    names, culprit = list(weights.entries), find_culprit(weights, file)
    settings, _ = blame_file(
        culprit, lambda: from_published_mdlm(make_stand_ins(weights, names), config)
    )
    if not isinstance(settings, DiTSettings):
        what = "holds a DiMamba, of which there is no class of transformers"
        raise CheckpointError(what, file=culprit, fix="genodiff checkpoint import reads it")
    state = weights.read(names)
    _, tensors = blame_file(culprit, lambda: from_published_mdlm(state, config))
    here = map_mdlm_names(settings, find_prefix(names) or "")
    found = {
        theirs: tensors[mine].to(state[here[mine]].dtype)
        for mine, theirs in map_mdlm_names(settings, _PREFIX).items()
    }
    return found | {_PREFIX + TABLE: make_rotary_table(settings).to(torch.float32)}
