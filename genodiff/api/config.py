"""Settings of runs: `genodiff config`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from genodiff.alphabet import DNA
from genodiff.backbones.settings import PRESETS
from genodiff.data.text_recipe import RECIPE_LOADERS, find_domain
from genodiff.domain import TEXT
from genodiff.runs.config import OWN, RunConfig
from genodiff.runs.resolve import resolve_config
from genodiff.settings import read_yaml
from genodiff.vocabulary import BYTES

_GPT2 = 50_258  # tokens of GPT-2, and a mask


def show_config(
    recipe: str = "toy",
    *,
    preset: str | None = None,
    config: str | Path | None = None,
    **settings: Any,
) -> RunConfig:
    """The whole configuration that `genodiff.train` would use. Raises `UsageError`."""
    over = settings | ({"preset": preset} if preset else {})
    given = {} if config is None else read_yaml(config)
    if not (isinstance(given, dict) and "recipe" in given):
        over["recipe"] = recipe
        if find_domain(recipe) == TEXT.name:
            over["domain"] = TEXT.name
    return resolve_config(given, file=config, over=over)


def check_config(file: str | Path) -> str | None:
    """Judge a file of settings; the recipe that it names, or None. Raises `UsageError`."""
    given = read_yaml(file)
    named = isinstance(given, dict) and "recipe" in given
    found = resolve_config(given, file=file, over=None if named else {"recipe": "toy"})
    if named and found.recipe != OWN:
        RECIPE_LOADERS[found.domain](found.recipe)
    return found.recipe if named else None


def list_presets() -> list[dict[str, Any]]:
    """A row for each preset: its kind, shape and weights, which depend on the vocabulary."""
    return [
        {
            "preset": name,
            "kind": settings.kind,
            "d_model": settings.d_model,
            "n_layer": settings.n_layer,
            "parameters": settings.n_parameters(DNA.padded_size),
            "parameters_of": {
                "dna": settings.n_parameters(DNA.padded_size),
                "bytes": settings.n_parameters(BYTES.padded_size),
                "gpt2": settings.n_parameters(_GPT2),
            },
        }
        for name, settings in PRESETS.items()
    ]


def describe_settings() -> dict[str, Any]:
    """The JSON schema of the settings."""
    return RunConfig.model_json_schema()
