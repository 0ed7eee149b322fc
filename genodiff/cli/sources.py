"""Which data the flags RECIPE, `--fasta`, `--text` and `--domain` name together."""

import os
from typing import Any

from genodiff.data.recipe import recipe_names
from genodiff.data.text_recipe import domain_of
from genodiff.errors import UsageError


def resolve_source(
    recipe: str | None, fasta: str | None, text: str | None, domain: str | None, given: Any
) -> tuple[str | None, str | None, str | None]:
    """(recipe, text file, domain) that the flags mean.

    A path in a recipe's place is a text, and a recipe knows its domain. `given` are the settings of
    a configuration file. Raises `UsageError` where they contradict each other.
    """
    named = recipe or (given.get("recipe") if isinstance(given, dict) else None)
    if text is not None and fasta is not None:
        raise UsageError("--text and --fasta exclude each other", fix="give one of them")
    is_file = (
        recipe is not None
        and not recipe.endswith((".yaml", ".yml"))
        and os.path.exists(recipe)
        and recipe not in recipe_names()
    )
    if is_file and domain == "text":
        if text is not None:
            raise UsageError(
                f"'{recipe}' and --text are two texts", fix="give one of them, or name a recipe"
            )
        return "own", recipe, domain
    if named is None or named == "own":
        return recipe, text, domain or ("text" if text is not None else None)
    there = domain_of(str(named))
    if domain not in (None, there):
        what = f"'{named}' is a recipe of {there}, and --domain says {domain}"
        raise UsageError(
            what, fix=f"leave --domain out, or name a recipe of {domain} (`genodiff data list`)"
        )
    for flag, value, meant in (("--fasta", fasta, "dna"), ("--text", text, "text")):
        if value is not None and meant != there:
            raise UsageError(
                f"{flag} does not go with '{named}', a recipe of {there}",
                fix=f"name a recipe of {meant}, or none",
            )
    return recipe, text, there


def make_absolute(path: str | None) -> str | None:
    """The absolute path, so that a run folder can be used from anywhere; links are kept."""
    return None if path is None else os.path.abspath(path)
