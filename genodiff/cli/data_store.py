"""`genodiff data list|get|build`: which data sets there are, fetching their files, and building
what training reads.

Heavy modules are imported when a command runs, so that `genodiff data check` starts at once.
"""

import json as json_module
import sys
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from genodiff.cli.common import Common


def register(app: App) -> None:
    """Add the three commands to `genodiff data`."""
    app.command(list_recipes, name="list")
    app.command(get)
    app.command(build)


def list_recipes(
    *,
    domain: Annotated[
        Literal["dna", "text"] | None, Parameter(help="Only the recipes of this domain.")
    ] = None,
    json: Annotated[
        bool, Parameter(negative="", help="One JSON object per recipe and line.")
    ] = False,
    common: Common = Common(),
) -> None:
    """The recipes by name, and whether their files are on this machine."""
    common.apply()
    from genodiff.data.fetch import present
    from genodiff.data.recipe import recipe_names
    from genodiff.data.text_recipe import load_any_recipe

    for name in recipe_names():
        recipe = load_any_recipe(name)
        if domain not in (None, recipe.domain):
            continue
        here = recipe.generator is not None or (
            bool(recipe.sources) and all(present(s) for s in recipe.sources)
        )
        if json:
            row = {
                "name": name,
                "domain": recipe.domain,
                "description": recipe.description,
                "present": here,
            }
            row["sources"] = [s.model_dump() for s in recipe.sources]
            _line(json_module.dumps(row))
        else:
            place = (
                "built in"
                if recipe.generator
                else "here"
                if here
                else "to fetch"
                if recipe.sources
                else "yours"
            )
            _line(f"{name:<15} {recipe.domain:<4} {place:<9} {recipe.description}")


def get(
    recipe: Annotated[str, Parameter(help="A recipe's name, or a YAML file.")],
    /,
    *,
    common: Common = Common(),
) -> None:
    """Fetch a recipe's files into the cache, checked by their hash; the paths go to stdout."""
    common.apply()
    from genodiff.data.fetch import fetch
    from genodiff.data.text_recipe import load_any_recipe

    found = load_any_recipe(recipe)
    for path in () if found.generator else fetch(found, offline=common.offline):
        _line(str(path))


def build(
    recipe: Annotated[
        str, Parameter(help="A recipe's name, or a YAML file; with --domain text your file, too.")
    ],
    /,
    *,
    fasta: Annotated[
        str | None, Parameter(help="Your FASTA file in place of the recipe's source.")
    ] = None,
    text: Annotated[
        str | None, Parameter(help="Your file or folder of text in place of the recipe's source.")
    ] = None,
    tokenizer: Annotated[
        str,
        Parameter(help="Of text: bytes, text8, gpt2, bert-base-uncased, or a tokenizer's folder."),
    ] = "bytes",
    packing: Annotated[
        Literal["auto", "packed", "padded"], Parameter(help="Of text: how windows are cut.")
    ] = "auto",
    domain: Annotated[Literal["dna", "text"] | None, Parameter(help="What it should hold.")] = None,
    bed: Annotated[
        str | None, Parameter(help="Your splits: a BED file with train, valid or test in column 4.")
    ] = None,
    seq_len: Annotated[int, Parameter(help="Window length to count windows by.")] = 1024,
    force: Annotated[bool, Parameter(negative="", help="Build again even if it is there.")] = False,
    json: Annotated[bool, Parameter(negative="", help="One JSON object on stdout.")] = False,
    common: Common = Common(),
) -> None:
    """Build what training reads, verify it, and count each split's windows and what is left out."""
    common.apply()
    from genodiff.cli.train import in_its_domain
    from genodiff.data.recipe import SPLITS, load_recipe
    from genodiff.data.store import Store, build_store
    from genodiff.data.text_recipe import load_text_recipe, own_text_recipe
    from genodiff.data.text_store import TextStore, build_text_store
    from genodiff.data.text_windows import text_windows
    from genodiff.data.tokenizer import open_tokenizer
    from genodiff.data.windows import Windows
    from genodiff.errors import DataError

    named, text, meant = in_its_domain(recipe, fasta, text, domain, None)
    store: Store | TextStore
    if meant == "text":
        texts = own_text_recipe(str(text)) if named == "own" else load_text_recipe(recipe)
        store = build_text_store(
            texts,
            text,
            open_tokenizer(tokenizer, offline=common.offline),
            offline=common.offline,
            force=force,
        )
    else:
        chosen = load_recipe(recipe, bed=bed)
        store = build_store(chosen, fasta, offline=common.offline, force=force)
    store.verify()
    splits: dict[str, Any] = {}
    for split in SPLITS:
        try:
            windows = (
                text_windows(store, texts, split, seq_len, packing=packing)
                if isinstance(store, TextStore)
                else Windows(store, chosen, split, seq_len)
            )
            unit = "tokens" if meant == "text" else "bases"
            splits[split] = {
                "windows": len(windows),
                unit: windows.intervals.n_bases,
                **windows.dropped,
            }
            words = windows.summary()
        except DataError as fault:
            if split == "train":
                raise
            splits[split], words = {"windows": 0, "why": str(fault)}, str(fault)
        if not json:
            _line(f"{split:<6} {words}")
    if json:
        row = {
            "store": str(store.path),
            **store.identity(),
            "notes": list(store.splits.notes),
            "splits": splits,
        }
        if isinstance(store, TextStore):
            row["duplicates_of_train"] = store.duplicates()
        _line(json_module.dumps(row))
    else:
        _line(f"store  {store.path}")


def _line(text: str) -> None:
    sys.stdout.write(text + "\n")
