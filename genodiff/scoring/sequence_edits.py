"""Edits of one-hot arrays (N, 4, L): rows of (sequence, position, base) or (sequence, position).

Positions are those of the given sequence, whatever else is edited in it.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from genodiff.errors import UsageError

Edits = dict[int, list[tuple[int, int]]]
"""For each sequence that changes, its (position, base) in the given order; base 0 of deletions."""


def read_edits(rows: Any, shape: Sequence[int], *, bases: bool) -> Edits:
    """The edits that `rows` mean. Raises `UsageError` for one outside an array of `shape`."""
    found: Edits = defaultdict(list)
    for row in rows.tolist() if hasattr(rows, "tolist") else rows:
        if len(row) != 2 + bases:
            what = "(sequence, position, base)" if bases else "(sequence, position)"
            raise UsageError(f"{tuple(row)} is no row of {what}", fix="give such rows")
        number, position = int(row[0]), int(row[1])
        base = row[2] if bases else 0
        if isinstance(base, str):
            base = "ACGT".find(base.upper()) if len(base) == 1 else -1
        if not (0 <= number < shape[0] and 0 <= position < shape[2] and 0 <= int(base) < 4):
            what = f"{tuple(row)} is outside {shape[0]} sequences of {shape[2]} bases"
            raise UsageError(what, fix="count from 0, and give A, C, G, T or 0 to 3")
        found[number].append((position, int(base)))
    return found


def substitute_bases(array: Float[Tensor, "N 4 L"], edits: Edits) -> Float[Tensor, "N 4 L"]:
    """`array` with other bases. Raises `UsageError` for two at one place."""
    changed = array.clone()
    for number, some in edits.items():
        if len({position for position, _ in some}) < len(some):
            what = f"sequence {number} has two substitutions at one place"
            raise UsageError(what, fix="give one, or the sequence twice")
        for position, base in some:
            changed[number, :, position] = 0
            changed[number, base, position] = 1
    return changed


def delete_bases(
    array: Float[Tensor, "N 4 L"], edits: Edits, *, left: bool = False
) -> Float[Tensor, "N 4 M"]:
    """`array` without bases, all cut to the length of the shortest."""
    gone = {number: {position for position, _ in some} for number, some in edits.items()}
    length = array.shape[2] - max(map(len, gone.values()), default=0)
    if length < 1:
        raise UsageError("no base would be left", fix="give longer sequences")
    rows = []
    for number, row in enumerate(array):
        kept = [i for i in range(array.shape[2]) if i not in gone.get(number, ())]
        rows.append(keep_length(row[None, :, kept], length, left=left)[0])
    return torch.stack(rows)


def insert_bases(
    array: Float[Tensor, "N 4 L"], edits: Edits, *, left: bool = False
) -> Float[Tensor, "N 4 L"]:
    """`array` with bases more, cut to its length.

    Of several in front of one base, the last that is given stands first, as each is put in by
    itself.
    """
    length, changed = array.shape[2], array.clone()
    for number, some in edits.items():
        parts, at = [], 0
        for position, base in sorted(reversed(some), key=lambda edit: edit[0]):
            column = array.new_zeros(4, 1)
            column[base] = 1
            parts += [array[number, :, at:position], column]
            at = position
        row = torch.cat([*parts, array[number, :, at:]], 1)
        changed[number] = keep_length(row[None], length, left=left)[0]
    return changed


def keep_length(
    array: Float[Tensor, "N 4 L"], length: int, *, left: bool = False
) -> Float[Tensor, "N 4 M"]:
    """The first `length` bases of each row, with `left` the last: the left is cut."""
    return array[:, :, array.shape[2] - length :] if left else array[:, :, :length]
