"""How many documents each split of a text holds, and how many of them are duplicates."""

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.data.text_build import deal_texts
from genodiff.data.text_recipe import TextRecipe

Documents = tuple[NDArray[np.uint64], NDArray[np.int64]]
"""The hash and the size in bytes of each document."""


def count_documents(recipe: TextRecipe, files: list[tuple[str, Path]]) -> Iterator[dict[str, Any]]:
    """A row per split: name, documents, length in bytes, and duplicates.

    `repeated` counts documents that repeat an earlier one of the split, `in_train` those that stand
    in the train split too.
    """
    parts: dict[str, tuple[array[int], array[int]]] = {}
    held = 0
    for text, part, digest, _ in deal_texts(recipe, files, cut_anywhere=True):
        held += len(text.encode())
        if digest is not None:
            hashes, sizes = parts.setdefault(part, (array("Q"), array("q")))
            hashes.append(digest)
            sizes.append(held)
            held = 0
    found: dict[str, Documents] = {}
    for part, (hashes, sizes) in parts.items():
        found[part] = np.array(hashes, np.uint64), np.array(sizes, np.int64)
    if "all" in found:
        found |= _cut_stream(recipe, *found.pop("all"))
    train = np.unique(found["train"][0]) if "train" in found else np.zeros(0, np.uint64)
    for split in ("train", "valid", "test"):
        if split in found:
            digests, size = found[split]
            row = {"name": split, "documents": len(digests), "length": int(size.sum())}
            row["repeated"] = len(digests) - len(np.unique(digests))
            yield row | {"in_train": 0 if split == "train" else int(np.isin(digests, train).sum())}


def _cut_stream(
    recipe: TextRecipe, digests: NDArray[np.uint64], size: NDArray[np.int64]
) -> dict[str, Documents]:
    """One stream of documents cut by position, as the store cuts it where a token is a byte."""
    total, end = int(size.sum()), len(size)
    found: dict[str, Documents] = {}
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
