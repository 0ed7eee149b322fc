"""Fetch a recipe's files into the cache, checked by their hash; the paths go to stdout.

`example` is a made-up genome with two related genomes, genes and variants: nothing is fetched.
"""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from genodiff.api.data import fetch_data
from genodiff.cli.common import OUTPUT, Common, Force


def get(
    recipe: Annotated[str, Parameter(help="A recipe's name, a YAML file, or example.")],
    /,
    *,
    out: Annotated[Path | None, OUTPUT, Parameter(help="Folder of the example [example].")] = None,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Fetch or write the files and print their paths."""
    common.prepare()
    for path in fetch_data(recipe, out=out, offline=common.offline, force=force):
        sys.stdout.write(f"{path}\n")
