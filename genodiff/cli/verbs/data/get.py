"""Fetch a recipe's files into the cache, checked by their hash; the paths go to stdout."""

import sys
from typing import Annotated

from cyclopts import Parameter

from genodiff.api.data import fetch_data
from genodiff.cli.common import Common


def get(
    recipe: Annotated[str, Parameter(help="A recipe's name, or a YAML file.")],
    /,
    *,
    common: Common = Common(),
) -> None:
    """Fetch the files and print their paths."""
    common.prepare()
    for path in fetch_data(recipe, offline=common.offline):
        sys.stdout.write(f"{path}\n")
