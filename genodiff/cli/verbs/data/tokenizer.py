"""Train a byte-level BPE tokenizer on text."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from genodiff.api.data import train_tokenizer
from genodiff.cli.common import OUTPUT, Common, Force, convert_whole_number
from genodiff.errors import printable


def tokenizer(
    texts: Annotated[list[str], Parameter(help="Text files or folders to learn from.")],
    /,
    *,
    out: Annotated[
        Path, OUTPUT, Parameter(help="Folder to write tokenizer.json into; give it to --tokenizer.")
    ],
    vocab_size: Annotated[
        int,
        Parameter(
            converter=convert_whole_number,
            help="Tokens, with the 256 bytes and three special ones.",
        ),
    ] = 8192,
    recipe: Annotated[
        str | None,
        Parameter(help="How the files are read: a text recipe; its train files are used."),
    ] = None,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Write `OUT/tokenizer.json`."""
    common.prepare()
    trained = train_tokenizer(
        texts,
        out=out,
        vocab_size=vocab_size,
        recipe=recipe,
        force=force,
        offline=common.offline,
    )
    print(f"{printable(trained.path)}: {trained.n_tokens:,} tokens")
