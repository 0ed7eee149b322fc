"""Settings of runs: `genodiff config`."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from genodiff.alphabet import DNA
from genodiff.backbones.settings import PRESETS
from genodiff.data.text_recipe import RECIPE_LOADERS, find_domain
from genodiff.domain import TEXT
from genodiff.jobs.request import Option, Request
from genodiff.jobs.verbs import verb
from genodiff.runs.config import OWN, RunConfig
from genodiff.runs.resolve import ALIASES as ALIASES
from genodiff.runs.resolve import list_sections as list_sections
from genodiff.runs.resolve import list_short_names as list_short_names
from genodiff.runs.resolve import resolve_config
from genodiff.settings import read_yaml, to_yaml
from genodiff.vocabulary import BYTES

_GPT2 = 50_258  # tokens of GPT-2, and a mask
ConfigFile = Annotated[Path | str | None, Option("YAML file of settings; flags override it.")]


@verb("config show", function="")
@dataclass(frozen=True, kw_only=True)
class ConfigShowRequest(Request[RunConfig]):
    """Print the full configuration that `genodiff train` would use; `--config` reads it back."""

    json_help: ClassVar[str] = "JSON instead of YAML."
    json_indent: ClassVar[int | None] = 2
    has_machine: ClassVar[bool] = False

    recipe: Annotated[str, Option("Name of a recipe.", ("RECIPE",), is_word=True)] = field(
        default="toy", kw_only=False
    )
    preset: Annotated[str | None, Option("Network preset.")] = None
    config: ConfigFile = None
    settings: Annotated[
        Mapping[str, Any], Option("Settings of a run, by name.", is_settings=True)
    ] = field(default_factory=dict)

    def answer(self, *given: Any) -> RunConfig:
        """The configuration. Raises `UsageError`."""
        over = dict(self.settings) | ({"preset": self.preset} if self.preset else {})
        stated = {} if self.config is None else read_yaml(self.config)
        if not (isinstance(stated, dict) and "recipe" in stated):
            over["recipe"] = self.recipe
            if find_domain(self.recipe) == TEXT.name:
                over["domain"] = TEXT.name
        return resolve_config(stated, file=self.config, over=over)

    def list_rows(self, answer: Any) -> list[Any]:
        return [answer.model_dump(mode="json")]

    def show(self, answer: Any) -> None:
        print(to_yaml(answer), end="")


@verb(
    "config check",
    function="",
    help="""
Check a file of settings; writes nothing.

The recipe may be given on the command line instead of in the file.
""",
)
@dataclass(frozen=True, kw_only=True)
class ConfigCheckRequest(Request[str | None]):
    """Check a file of settings; returns the recipe that it names, or None. Raises `UsageError`."""

    has_machine: ClassVar[bool] = False

    file: Annotated[Path | str, Option("YAML file of settings.", ("FILE",), is_word=True)] = field(
        kw_only=False
    )

    def answer(self, *given: Any) -> str | None:
        stated = read_yaml(self.file)
        named = isinstance(stated, dict) and "recipe" in stated
        found = resolve_config(stated, file=self.file, over=None if named else {"recipe": "toy"})
        if named and found.recipe != OWN:
            RECIPE_LOADERS[found.domain](found.recipe)
        return found.recipe if named else None

    def list_rows(self, answer: Any) -> list[Any]:
        return [{"file": str(self.file), "ok": True, "recipe": answer}]

    def show(self, answer: Any) -> None:
        print(f"{self.file}: sound{'' if answer else ' (it names no recipe)'}", file=sys.stderr)


@verb(
    "config presets",
    function="",
    help="""
List the networks for `--preset`, smallest first, with their number of parameters.

The embedding table is included: it is small for DNA and large for GPT-2's vocabulary. Sizes in a
name are for DNA; tiny, small and medium are the names of published networks.
""",
)
@dataclass(frozen=True, kw_only=True)
class PresetsRequest(Request[list[dict[str, Any]]]):
    """List the presets: kind, shape and number of parameters, which depends on the vocabulary."""

    json_help: ClassVar[str] = "One JSON object per line."
    has_machine: ClassVar[bool] = False

    def answer(self, *given: Any) -> list[dict[str, Any]]:
        sizes = {"dna": DNA.padded_size, "bytes": BYTES.padded_size, "gpt2": _GPT2}
        return [
            {
                "preset": name,
                "kind": settings.kind,
                "d_model": settings.d_model,
                "n_layer": settings.n_layer,
                "parameters": settings.n_parameters(DNA.padded_size),
                "parameters_of": {of: settings.n_parameters(n) for of, n in sizes.items()},
            }
            for name, settings in PRESETS.items()
        ]

    def list_rows(self, answer: Any) -> list[Any]:
        return list(answer)

    def show(self, answer: Any) -> None:
        heads = ("preset", "kind", "shape", "weights on DNA", "bytes", "gpt2")
        print("{:<18} {:<9} {:<20} {:>14} {:>13} {:>13}".format(*heads))
        for row in sorted(answer, key=lambda row: int(row["parameters"])):
            shape = f"{row['n_layer']:>2} layers of {row['d_model']:>5,}"
            of = row["parameters_of"]
            print(
                f"{row['preset']:<18} {row['kind']:<9} {shape:<20} {of['dna']:>14,} "
                f"{of['bytes']:>13,} {of['gpt2']:>13,}"
            )


@verb("config schema", function="", help="Print the JSON schema of the settings.")
@dataclass(frozen=True, kw_only=True)
class SchemaRequest(Request[dict[str, Any]]):
    """Print the JSON schema of the settings."""

    json_help: ClassVar[str] = ""
    has_machine: ClassVar[bool] = False

    def answer(self, *given: Any) -> dict[str, Any]:
        return RunConfig.model_json_schema()

    def show(self, answer: Any) -> None:
        print(json.dumps(answer, indent=2))
