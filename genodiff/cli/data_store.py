"""`genodiff data list|get|build`: which data sets there are, fetching their files, and building what training reads.

Heavy modules are imported when a command runs, so that `genodiff data check` starts at once.
"""

import json as json_module
import sys
from typing import Annotated, Any

from cyclopts import App, Parameter

from genodiff.cli.common import Common


def register(app: App) -> None:
    """Add the three commands to `genodiff data`."""
    app.command(list_recipes, name="list")
    app.command(get)
    app.command(build)


def list_recipes(
    *,
    json: Annotated[bool, Parameter(negative="", help="One JSON object per recipe and line.")] = False,
    common: Common = Common(),
) -> None:
    """The recipes by name, and whether their files are on this machine."""
    common.apply()
    from genodiff.data.fetch import present
    from genodiff.data.recipe import load_recipe, recipe_names

    for name in recipe_names():
        recipe = load_recipe(name)
        here = recipe.generator is not None or (bool(recipe.sources) and all(present(s) for s in recipe.sources))
        if json:
            row = {"name": name, "domain": recipe.domain, "description": recipe.description, "present": here}
            row["sources"] = [s.model_dump() for s in recipe.sources]
            _line(json_module.dumps(row))
        else:
            place = "built in" if recipe.generator else "here" if here else "to fetch"
            _line(f"{name:<12} {place:<9} {recipe.description}")


def get(
    recipe: Annotated[str, Parameter(help="A recipe's name, or a YAML file.")],
    /,
    *,
    common: Common = Common(),
) -> None:
    """Fetch a recipe's files into the cache, checked by their hash; the paths go to stdout."""
    common.apply()
    from genodiff.data.fetch import fetch
    from genodiff.data.recipe import load_recipe

    found = load_recipe(recipe)
    for path in () if found.generator else fetch(found, offline=common.offline):
        _line(str(path))


def build(
    recipe: Annotated[str, Parameter(help="A recipe's name, or a YAML file.")],
    /,
    *,
    fasta: Annotated[str | None, Parameter(help="Your FASTA file in place of the recipe's source.")] = None,
    bed: Annotated[str | None, Parameter(help="Your splits: a BED file with train, valid or test in column 4.")] = None,
    seq_len: Annotated[int, Parameter(help="Window length to count windows by.")] = 1024,
    force: Annotated[bool, Parameter(negative="", help="Build again even if it is there.")] = False,
    json: Annotated[bool, Parameter(negative="", help="One JSON object on stdout.")] = False,
    common: Common = Common(),
) -> None:
    """Build what training reads, verify it, and count each split's windows and what is left out."""
    common.apply()
    from genodiff.data.recipe import SPLITS, load_recipe
    from genodiff.data.store import build_store
    from genodiff.data.windows import Windows
    from genodiff.errors import DataError

    chosen = load_recipe(recipe, bed=bed)
    store = build_store(chosen, fasta, offline=common.offline, force=force)
    store.verify()
    splits: dict[str, Any] = {}
    for split in SPLITS:
        try:
            windows = Windows(store, chosen, split, seq_len)
            splits[split] = {"windows": len(windows), "bases": windows.intervals.n_bases, **windows.dropped}
            words = windows.summary()
        except DataError as fault:
            if split == "train":
                raise
            splits[split], words = {"windows": 0, "why": str(fault)}, str(fault)
        if not json:
            _line(f"{split:<6} {words}")
    if json:
        row = {"store": str(store.path), **store.identity(), "notes": list(store.splits.notes), "splits": splits}
        _line(json_module.dumps(row))
    else:
        _line(f"store  {store.path}")


def _line(text: str) -> None:
    sys.stdout.write(text + "\n")
