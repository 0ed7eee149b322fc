"""Train a byte-level BPE tokenizer on text."""

import json as json_module
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from genodiff.cli.common import OUTPUT, Common, Force, whole
from genodiff.data.file_tokenizer import train_bpe
from genodiff.data.text_build import dealt, sources_of
from genodiff.data.text_recipe import load_text_recipe, own_text_recipe
from genodiff.errors import UsageError, printable
from genodiff.io import atomic
from genodiff.io.target import check_target


def tokenizer(
    texts: Annotated[list[str], Parameter(help="Text files or folders to learn from.")],
    /,
    *,
    out: Annotated[
        Path, OUTPUT, Parameter(help="Folder to write tokenizer.json into; give it to --tokenizer.")
    ],
    vocab_size: Annotated[
        int, Parameter(converter=whole, help="Tokens, with the 256 bytes and three special ones.")
    ] = 8192,
    recipe: Annotated[
        str | None,
        Parameter(help="How the files are read: a text recipe; its train files are used."),
    ] = None,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Write `OUT/tokenizer.json`."""
    check_target(out / "tokenizer.json", force=force, inputs=texts)
    common.prepare()
    if not 259 < vocab_size <= 1 << 20:
        raise UsageError(
            f"--vocab-size {vocab_size} is not between 260 and {1 << 20}",
            fix="give 8192, for example",
        )
    if not texts:
        raise UsageError("no text to learn from", fix="give a file or a folder")

    def pieces() -> Iterator[str]:
        for name in texts:
            chosen = own_text_recipe(name) if recipe is None else load_text_recipe(recipe)
            files, _ = sources_of(chosen, name, offline=common.offline)
            kept = [item for item in files if item[0] in ("train", "all")] or files
            for text, part, _, _ in dealt(chosen, kept, cut_anywhere=False):
                if part in ("train", "all") or kept is files:
                    yield text

    content = train_bpe(pieces(), vocab_size)
    atomic.write_bytes(out / "tokenizer.json", content)
    size = len(json_module.loads(content)["model"]["vocab"])
    print(f"{printable(out / 'tokenizer.json')}: {size:,} tokens")
