"""Show, check and document settings."""

import json as json_module
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from genodiff.api.config import check_config, describe_settings, list_presets, show_config
from genodiff.cli.settings_flags import SettingsFlags, collect_settings
from genodiff.settings import to_yaml

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
    found = show_config(recipe, preset=preset, config=config, **collect_settings(settings))
    print(
        json_module.dumps(found.model_dump(mode="json"), indent=2) if json else to_yaml(found),
        end="\n" if json else "",
    )


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
    named = check_config(file)
    if json:
        print(json_module.dumps({"file": str(file), "ok": True, "recipe": named}))
    else:
        print(f"{file}: sound{'' if named else ' (it names no recipe)'}", file=sys.stderr)


@config.command
def presets(
    *,
    json: Annotated[bool, Parameter(negative="", help="One JSON object per line.")] = False,
) -> None:
    """The networks that `--preset` knows, smallest first, with their number of weights.

    The table of tokens is part of it: it is small for DNA and large for GPT-2's vocabulary. Sizes
    in a name are of DNA; tiny, small and medium are the names under which networks were published.
    """
    rows = list_presets()
    if json:
        for row in rows:
            print(json_module.dumps(row))
        return
    heads = ("preset", "kind", "shape", "weights on DNA", "bytes", "gpt2")
    print("{:<18} {:<9} {:<20} {:>14} {:>13} {:>13}".format(*heads))
    for row in sorted(rows, key=lambda row: row["parameters"]):
        shape = f"{row['n_layer']:>2} layers of {row['d_model']:>5,}"
        of = row["parameters_of"]
        print(
            f"{row['preset']:<18} {row['kind']:<9} {shape:<20} {of['dna']:>14,} "
            f"{of['bytes']:>13,} {of['gpt2']:>13,}"
        )


@config.command
def schema() -> None:
    """The JSON schema of the settings, on stdout."""
    print(json_module.dumps(describe_settings(), indent=2))
