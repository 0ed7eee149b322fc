"""Build what training reads, verify it, and count the windows of each split."""

import json as json_module
import sys
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from genodiff.api.sources import OWN, resolve_source
from genodiff.cli.common import Common
from genodiff.data.dna_store import build_dna_store
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.recipe import SPLITS, load_recipe, make_user_recipe
from genodiff.data.store import Store
from genodiff.data.text_recipe import load_text_recipe, own_text_recipe
from genodiff.data.text_store import TextStore, build_text_store
from genodiff.data.text_windows import text_windows
from genodiff.data.tokenizer_sources import open_tokenizer
from genodiff.domain import DNA, TEXT
from genodiff.errors import DataError


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
    """Build the store of a recipe, and print what each split holds."""
    common.prepare()
    named, fasta, text, meant = resolve_source(recipe, fasta, text, domain)
    store: Store | TextStore
    if meant == TEXT.name:
        texts = own_text_recipe(str(text)) if named == OWN else load_text_recipe(recipe)
        store = build_text_store(
            texts,
            text,
            open_tokenizer(tokenizer, offline=common.offline),
            offline=common.offline,
            force=force,
        )
    else:
        if named == OWN and fasta is not None:
            chosen = make_user_recipe(fasta, bed)
        else:
            chosen = load_recipe(recipe, bed=bed)
        store = build_dna_store(chosen, fasta, offline=common.offline, force=force)
    store.verify()
    splits: dict[str, Any] = {}
    for split in SPLITS:
        try:
            windows = (
                text_windows(store, texts, split, seq_len, packing=packing)
                if isinstance(store, TextStore)
                else DnaWindows(store, chosen, split, seq_len)
            )
            unit = TEXT.units if meant == TEXT.name else DNA.units
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
            sys.stdout.write(f"{split:<6} {words}\n")
    if json:
        row = {
            "store": str(store.path),
            **store.identity(),
            "notes": list(store.splits.notes),
            "splits": splits,
        }
        if isinstance(store, TextStore):
            row["duplicates_of_train"] = store.duplicates()
        sys.stdout.write(json_module.dumps(row) + "\n")
    else:
        sys.stdout.write(f"store  {store.path}\n")
