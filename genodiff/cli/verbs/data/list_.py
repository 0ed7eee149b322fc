"""The recipes by name, and whether their files are on this machine."""

import json as json_module
import sys
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from genodiff.api.data import list_recipes
from genodiff.cli.common import Common


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
    for row in list_recipes(domain):
        line = json_module.dumps(row) if json else _describe(row)
        sys.stdout.write(line + "\n")


def _describe(row: dict[str, Any]) -> str:
    return f"{row['name']:<15} {row['domain']:<4} {_find_place(row):<9} {row['description']}"


def _find_place(row: dict[str, Any]) -> str:
    if not row["sources"]:
        return "built in" if row["present"] else "yours"
    return "here" if row["present"] else "to fetch"
