"""The recipes by name, and whether their files are on this machine."""

import json as json_module
import sys
from typing import Annotated, Literal

from cyclopts import Parameter

from genodiff.cli.common import Common
from genodiff.data.fetch import present
from genodiff.data.recipe import Recipe, recipe_names
from genodiff.data.text_recipe import TextRecipe, load_any_recipe


def list_(
    *,
    domain: Annotated[
        Literal["dna", "text"] | None, Parameter(help="Only the recipes of this domain.")
    ] = None,
    json: Annotated[
        bool, Parameter(negative="", help="One JSON object per recipe and line.")
    ] = False,
    common: Common = Common(),
) -> None:
    """Print one line per recipe."""
    common.prepare()
    for name in recipe_names():
        recipe = load_any_recipe(name)
        if domain not in (None, recipe.domain):
            continue
        place = _find_place(recipe)
        line = f"{name:<15} {recipe.domain:<4} {place:<9} {recipe.description}"
        if json:
            row = {
                "name": name,
                "domain": recipe.domain,
                "description": recipe.description,
                "present": place in ("built in", "here"),
                "sources": [s.model_dump() for s in recipe.sources],
            }
            line = json_module.dumps(row)
        sys.stdout.write(line + "\n")


def _find_place(recipe: Recipe | TextRecipe) -> str:
    if recipe.generator:
        return "built in"
    if not recipe.sources:
        return "yours"
    return "here" if all(present(source) for source in recipe.sources) else "to fetch"
