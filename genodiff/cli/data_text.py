"""`genodiff data check` of texts with many documents, and `genodiff data tokenizer`.

`check` reads every document and judges it, counts those of each split, and looks for the same text
on both sides of it.
"""

import json as json_format
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from genodiff.cli.common import Common, whole
from genodiff.errors import DataError, UsageError, printable

if TYPE_CHECKING:
    import numpy as np  # `data check` of a FASTA file needs none


def register(app: App) -> None:
    """Add the command to `genodiff data`."""
    app.command(tokenizer)


def check_documents(name: str, text: str | None, json: bool, shortest: int | None) -> None:
    """Judge the documents of a recipe, a folder or a file; one line (or JSON object) per split on
    stdout.
    """
    from genodiff.data.text_build import sources_of
    from genodiff.data.text_recipe import load_text_recipe, own_text_recipe

    given = text if text is not None else name if Path(name).exists() else None
    recipe = own_text_recipe(str(given)) if given == name else load_text_recipe(name)
    files, notes = sources_of(recipe, given, offline=True)
    rows = list(_splits(recipe, files))
    longest = max((row["length"] for row in rows), default=0)
    if not longest:
        raise DataError(
            "is empty or holds only white space: no text",
            file=files[0][1],
            fix="give a file with text",
        )
    if shortest is not None and longest < shortest:
        what = f"every split is shorter than --seq-len {shortest}: the longest has {longest} bytes"
        raise DataError(what, file=files[0][1], fix="give more text or a smaller --seq-len")
    for row in rows:
        if json:
            print(json_format.dumps(row))
            continue
        said = f"{row['documents']:,} documents, {row['length']:,} bytes"
        said += f"; {row['repeated']:,} repeat an earlier one" if row["repeated"] else ""
        said += f"; {row['in_train']:,} stand in train, too" if row["in_train"] else ""
        print(f"{row['name']:<6} {said}")
    if not json:
        files_said = f"{len(files)} file{'s' * (len(files) != 1)}"
        print(
            f"{printable(given or name)}: sound; "
            f"{files_said}{''.join(f'; {printable(note)}' for note in notes)}"
        )


def _splits(recipe: Any, files: list[tuple[str, Path]]) -> Iterator[dict[str, Any]]:
    import numpy as np

    from genodiff.data.text_build import dealt

    sizes: dict[str, array[int]] = {}
    hashes: dict[str, array[int]] = {}
    held = 0
    for text, part, digest, _ in dealt(recipe, files, cut_anywhere=True):
        held += len(text.encode())
        if digest is not None:
            sizes.setdefault(part, array("q")).append(held)
            hashes.setdefault(part, array("Q")).append(digest)
            held = 0
    found = {
        part: (np.array(hashes[part], np.uint64), np.array(sizes[part], np.int64)) for part in sizes
    }
    if "all" in found:
        found |= _cut(recipe, *found.pop("all"))
    train = np.unique(found["train"][0]) if "train" in found else np.zeros(0, np.uint64)
    for split in ("train", "valid", "test"):
        if split in found:
            digests, size = found[split]
            row = {"name": split, "documents": len(digests), "length": int(size.sum())}
            row["repeated"] = len(digests) - len(np.unique(digests))
            yield row | {"in_train": 0 if split == "train" else int(np.isin(digests, train).sum())}


def _cut(
    recipe: Any, digests: "np.ndarray", size: "np.ndarray"
) -> dict[str, tuple["np.ndarray", "np.ndarray"]]:
    """One stream of documents cut by position, as the store cuts it where a token is a byte."""
    import numpy as np

    total, end = int(size.sum()), len(size)
    found: dict[str, tuple[Any, Any]] = {}
    before = np.cumsum(size) - size
    limit = total
    for split in ("test", "valid"):
        part = recipe.cut.get(split, 0.05)
        limit -= int(part * total) if part < 1 else int(part)
        first = int(np.searchsorted(before, max(limit, 0), "right")) - 1 if len(size) >= 40 else end
        found[split], end = (digests[first:end], size[first:end]), min(first, end)
    return {
        "train": (digests[:end], size[:end]),
        **{split: part for split, part in found.items() if len(part[0])},
    }


def tokenizer(
    texts: Annotated[list[str], Parameter(help="Text files or folders to learn from.")],
    /,
    *,
    out: Annotated[
        Path, Parameter(help="Folder to write tokenizer.json into; give it to --tokenizer.")
    ],
    vocab_size: Annotated[
        int, Parameter(converter=whole, help="Tokens, with the 256 bytes and three special ones.")
    ] = 8192,
    recipe: Annotated[
        str | None,
        Parameter(help="How the files are read: a text recipe; its train files are used."),
    ] = None,
    common: Common = Common(),
) -> None:
    """Train a byte-level BPE tokenizer on text."""
    common.apply()
    from genodiff.data.text_build import dealt, sources_of
    from genodiff.data.text_recipe import load_text_recipe, own_text_recipe
    from genodiff.data.tokenizer import train_bpe
    from genodiff.io import atomic

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
    size = len(json_format.loads(content)["model"]["vocab"])
    print(f"{printable(out / 'tokenizer.json')}: {size:,} tokens")
