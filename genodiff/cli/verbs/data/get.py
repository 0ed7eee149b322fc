"""Fetch a recipe's files into the cache, checked by their hash; the paths go to stdout."""

import sys
from typing import Annotated

from cyclopts import Parameter

from genodiff.cli.common import Common
from genodiff.data.fetch import fetch
from genodiff.data.text_recipe import load_any_recipe


def get(
    recipe: Annotated[str, Parameter(help="A recipe's name, or a YAML file.")],
    /,
    *,
    common: Common = Common(),
) -> None:
    """Fetch the files and print their paths."""
    common.prepare()
    found = load_any_recipe(recipe)
    for path in () if found.generator else fetch(found, offline=common.offline):
        sys.stdout.write(f"{path}\n")
