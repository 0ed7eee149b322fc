"""What all published models share: their weights are judged before they are read."""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

from genodiff.hf.folders import find_folder

_HUB = ("cache_dir", "force_download", "local_files_only", "token", "revision", "subfolder")
_SOURCE: ContextVar[str | None] = ContextVar("_SOURCE", default=None)


class PublishedModel(PreTrainedModel):
    """A model of transformers that reads published folders through `genodiff.hub`."""

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
        state = cls._read_folder(folder, given)
        source = _SOURCE.set(str(name))
        try:
            model = super().from_pretrained(None, *args, config=config, state_dict=state, **kwargs)
        finally:
            _SOURCE.reset(source)
        loaded = model[0] if isinstance(model, tuple) else model
        loaded.name_or_path = loaded.config.name_or_path = str(name)
        return model

    @classmethod
    def _read_folder(cls, folder: Path, config: Mapping[str, Any] | None) -> dict[str, Tensor]:
        """The tensors by the names of this class; `config` stands in for the folder's."""
        raise NotImplementedError

    @staticmethod
    def _finalize_model_loading(model: Any, load_config: Any, loading_info: Any) -> Any:
        """As transformers', with the folder's name in its report of missing weights."""
        named = replace(load_config, pretrained_model_name_or_path=_SOURCE.get())
        return PreTrainedModel._finalize_model_loading(model, named, loading_info)
