"""Show, check and document settings."""

import json as json_module
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from genodiff.alphabet import DNA
from genodiff.backbones.backbone import PRESETS
from genodiff.cli.settings_flags import SettingsFlags, collect_settings
from genodiff.data.text_recipe import RECIPE_LOADERS, domain_of
from genodiff.domain import TEXT
from genodiff.runs.config import RunConfig
from genodiff.runs.resolve import resolve_config
from genodiff.settings import read_yaml, to_yaml

config = App(name="config")


@config.command
def show(
    recipe: Annotated[str, Parameter(help="A recipe's name.")] = "toy",
    /,
    *,
    preset: Annotated[str | None, Parameter(help="Network.")] = None,
    config: Annotated[
        Path | None, Parameter(help="YAML file of settings; flags go over it.")
    ] = None,
    settings: Annotated[SettingsFlags | None, Parameter(name="*")] = None,  # type: ignore[valid-type]
    json: Annotated[bool, Parameter(negative="", help="JSON instead of YAML.")] = False,
) -> None:
    """The whole configuration that `genodiff train` would use; `--config` takes it back."""
    over = collect_settings(settings) | ({"preset": preset} if preset else {})
    given = {} if config is None else read_yaml(config)
    if not (isinstance(given, dict) and "recipe" in given):
        over["recipe"] = recipe
        if domain_of(recipe) == TEXT.name:
            over["domain"] = TEXT.name
    found = resolve_config(given, file=config, over=over)
    print(found.model_dump_json(indent=2) if json else to_yaml(found), end="\n" if json else "")


@config.command
def check(
    file: Annotated[Path, Parameter(help="YAML file of settings.")],
    /,
    *,
    json: Annotated[bool, Parameter(negative="", help="One JSON object on stdout.")] = False,
) -> None:
    """Read a file of settings and judge it; writes nothing.

    A file may leave the recipe to the command line.
    """
    given = read_yaml(file)
    named = isinstance(given, dict) and "recipe" in given
    found = resolve_config(given, file=file, over=None if named else {"recipe": "toy"})
    if named and found.recipe != "own":
        RECIPE_LOADERS[found.domain](found.recipe)
    if json:
        print(
            json_module.dumps(
                {"file": str(file), "ok": True, "recipe": found.recipe if named else None}
            )
        )
    else:
        print(f"{file}: sound{'' if named else ' (it names no recipe)'}", file=sys.stderr)


@config.command
def presets(
    *,
    json: Annotated[bool, Parameter(negative="", help="One JSON object per line.")] = False,
) -> None:
    """The networks that `--preset` knows, with their parameters on DNA.

    The embedding and head of a text run are larger.
    """
    for name, settings in PRESETS.items():
        row = {
            "preset": name,
            "kind": settings.kind,
            "d_model": settings.d_model,
            "n_layer": settings.n_layer,
        }
        row["parameters"] = settings.n_parameters(DNA.padded_size)
        shown = (
            f"{name:<20} {settings.kind:<9} {settings.n_layer:>3} layers of "
            f"{settings.d_model:>5,} {row['parameters']:>12,} parameters"
        )
        print(json_module.dumps(row) if json else shown)


@config.command
def schema() -> None:
    """The JSON schema of the settings, on stdout."""
    print(json_module.dumps(RunConfig.model_json_schema(), indent=2))
