"""What all published models share: their weights are judged before they are read."""

import logging
from contextvars import ContextVar
from dataclasses import replace
from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers import initialization as init

from genodiff.backbones.backbone import Norm
from genodiff.errors import CheckpointError
from genodiff.hf.configuration import CaduceusConfig
from genodiff.hf.folders import find_folder, read_weights
from genodiff.hf.published_tree import (
    PublishedBlock,
    PublishedDirection,
    PublishedHead,
    StrandEmbedding,
    StrandHead,
)
from genodiff.hub.caduceus import COMPLEMENT, read_published_complement

_HUB = ("cache_dir", "force_download", "local_files_only", "token", "revision", "subfolder")
_SOURCE: ContextVar[str | None] = ContextVar("_SOURCE", default=None)
_log = logging.getLogger("genodiff")


class CaduceusPreTrainedModel(PreTrainedModel):
    """What the models share: reading published folders, initial values, embeddings."""

    config_class = CaduceusConfig
    config: CaduceusConfig
    base_model_prefix = "caduceus"
    supports_gradient_checkpointing = True
    _no_split_modules = [PublishedBlock.__name__]  # noqa: RUF012
    _warned = False

    @classmethod
    def from_pretrained(  # type: ignore[override]
        cls, pretrained_model_name_or_path: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """The model in a published folder, or in the hub's repository of this name.

        Weights are judged before they are read, and no pickle is executed. Raises `OSError` for a
        file that is missing or damaged, `ValueError` for a config of another model.
        """
        name, state = pretrained_model_name_or_path, kwargs.pop("state_dict", None)
        if name is None or state is not None:
            return super().from_pretrained(None, *args, state_dict=state, **kwargs)
        hub = {key: kwargs.pop(key) for key in _HUB if key in kwargs}
        folder = find_folder(name, kwargs.pop("variant", None), hub)
        config = kwargs.pop("config", None) or str(folder)
        given = config.to_dict() if isinstance(config, PreTrainedConfig) else None
        state = read_weights(folder, given, cls.__name__)
        source = _SOURCE.set(str(name))
        try:
            model = super().from_pretrained(None, *args, config=config, state_dict=state, **kwargs)
        finally:
            _SOURCE.reset(source)
        loaded = model[0] if isinstance(model, tuple) else model
        loaded.name_or_path = loaded.config.name_or_path = str(name)
        return model

    @staticmethod
    def _finalize_model_loading(model: Any, load_config: Any, loading_info: Any) -> Any:
        """As transformers', with the folder's name in its report of missing weights."""
        named = replace(load_config, pretrained_model_name_or_path=_SOURCE.get())
        return PreTrainedModel._finalize_model_loading(model, named, loading_info)

    def _init_weights(self, module: nn.Module) -> None:
        """Published initial values of what no file has given."""
        config = self.config
        std = (config.initializer_cfg or {}).get("initializer_range", 0.02)
        if isinstance(module, nn.Embedding) or module is getattr(self, "score", None):
            init.normal_(module.weight, std=std)
        elif isinstance(module, PublishedHead):
            init.kaiming_uniform_(module.weight, a=sqrt(5))
        elif isinstance(module, PublishedDirection):
            module.draw_weights(config.ssm_cfg or {})
        elif isinstance(module, Norm):
            init.ones_(module.weight)
            if module.bias is not None:
                init.zeros_(module.bias)
        elif isinstance(module, StrandEmbedding | StrandHead):
            init.copy_(module.complement_map, torch.tensor(list_complement(config)))

    def get_input_embeddings(self) -> nn.Module:
        """The word embeddings: (B, L) ids → (B, L, D), or (B, L, 2 D) with both strands."""
        found: nn.Module = self.base_model.backbone.embeddings["word_embeddings"]
        return found

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replaces the word embeddings. Raises `NotImplementedError` with both strands."""
        if self.config.rcps:
            raise NotImplementedError("the embeddings of both strands (rcps) cannot be replaced")
        self.base_model.backbone.embeddings["word_embeddings"] = value

    def resize_token_embeddings(
        self,
        new_num_tokens: int | None = None,
        pad_to_multiple_of: int | None = None,
        mean_resizing: bool = True,
    ) -> nn.Module:
        """The embeddings with this many rows, rounded up as `pad_vocab_size_multiple` says.

        Raises `NotImplementedError` with both strands: new rows would have no complement.
        """
        if new_num_tokens is None and pad_to_multiple_of is None:
            return self.get_input_embeddings()
        if self.config.rcps:
            raise NotImplementedError("the embeddings of both strands (rcps) cannot be resized")
        multiple = pad_to_multiple_of or self.config.pad_vocab_size_multiple
        found = super().resize_token_embeddings(new_num_tokens, multiple, mean_resizing)
        if self.config.complement_map is not None:
            self.config.pad_vocabulary()
        return found

    def _read_mask(self, attention_mask: Tensor | None) -> None:
        """Says once that padding counts: published Caduceus knows no mask."""
        told = CaduceusPreTrainedModel._warned
        if attention_mask is not None and not told and not bool(attention_mask.all()):
            CaduceusPreTrainedModel._warned = True
            _log.warning(
                "attention_mask is not read: published Caduceus takes padding as tokens like "
                "others; group sequences by length where that matters"
            )


def list_complement(config: CaduceusConfig) -> list[int]:
    """The complement of each id, padding rows included; empty with one strand."""
    if not config.rcps:
        return []
    try:
        found = read_published_complement({COMPLEMENT: config.complement_map}, config.vocab_size)
    except CheckpointError as fault:
        raise ValueError(f"config: {fault}") from None
    if found is None:
        raise ValueError("config: complement_map is missing, which a network of both strands needs")
    return list(found)
