"""Build what training reads, verify it, and count the windows of each split."""

import json as json_module
import sys
from typing import Annotated, Literal

from cyclopts import Parameter

from genodiff.api.data import build_store
from genodiff.cli.common import Common


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
        str | None,
        Parameter(
            help="Your splits: a BED file with train, valid or test in column 4; the strand is not "
            "used."
        ),
    ] = None,
    seq_len: Annotated[int, Parameter(help="Window length to count windows by.")] = 1024,
    force: Annotated[bool, Parameter(negative="", help="Build again even if it is there.")] = False,
    json: Annotated[bool, Parameter(negative="", help="One JSON object on stdout.")] = False,
    common: Common = Common(),
) -> None:
    """Build the store of a recipe, and print what each split holds."""
    common.prepare()
    built = build_store(
        recipe,
        fasta=fasta,
        text=text,
        tokenizer=tokenizer,
        packing=packing,
        domain=domain,
        bed=bed,
        seq_len=seq_len,
        offline=common.offline,
        force=force,
    )
    if json:
        sys.stdout.write(json_module.dumps(built.row) + "\n")
        return
    for split, words in built.summaries.items():
        sys.stdout.write(f"{split:<6} {words}\n")
    sys.stdout.write(f"store  {built.path}\n")
