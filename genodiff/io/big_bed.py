"""Intervals as bigBed, the indexed BED of UCSC's browser and IGV.

Integers are little-endian:

    header     64 bytes: version 4, no zoom levels, where the parts begin
    autoSql    the fields, in UCSC's language
    summary    bases covered, minimum, maximum, sum, sum of squares (of depth, here 1 everywhere)
    contigs    a B+ tree: name -> number and length
    blocks     zlib: for each row contig, start, end, and the other fields as text
    index      an R tree: contig and interval -> block

Source: Kent et al., 2010, doi 10.1093/bioinformatics/btq351, and its supplement. Trees have two
levels. A summary of a large region is made of the rows.
"""

import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from math import isqrt
from pathlib import Path
from typing import NamedTuple

from genodiff.io.atomic import write_bytes

_MAGIC, _CONTIGS, _INDEX = 0x8789F2EB, 0x78CA8C91, 0x2468ACE0
_ROWS = 512
"""Of a block."""


class BedRow(NamedTuple):
    """contig[start:end], and the fields behind these."""

    contig: str
    start: int
    end: int
    more: tuple[object, ...] = ()


class _Leaf(NamedTuple):
    """An entry of a tree: the key at which it begins, of the index where it ends, its bytes."""

    first: bytes
    end: tuple[int, int]
    entry: bytes


def write_big_bed(
    path: Path,
    contigs: Mapping[str, int],
    rows: Iterable[BedRow],
    fields: Sequence[str],
    *,
    about: tuple[str, str],
) -> None:
    """Write `rows` in any order.

    `fields` are those behind contig, start and end, "uint score" for example; `about` is a name
    and a sentence. Raises `OSError`.
    """
    ordered = sorted(rows, key=lambda one: (one.contig.encode(), one.start, one.end))
    number = {name: i for i, name in enumerate(dict.fromkeys(one.contig for one in ordered))}
    every = ("string chrom", "uint chromStart", "uint chromEnd", *fields)
    lines = "".join(f'    {one}; "{one.split()[-1]}"\n' for one in every)
    schema = f'table {about[0]}\n"{about[1]}"\n    (\n{lines}    )\n'.encode() + b"\0"
    at = 64 + len(schema)  # of the summary
    covered = sum(one.end - one.start for one in ordered)
    summary = struct.pack("<Q4d", covered, 1.0, 1.0, covered, covered)
    tree = _write_contigs(contigs, number, at + len(summary))
    data = at + len(summary) + len(tree)
    blocks, widest, leaves, where = [], 0, [], data + 8
    for name, group in groupby(ordered, key=lambda one: one.contig):
        some = list(group)
        for part in (some[i : i + _ROWS] for i in range(0, len(some), _ROWS)):
            raw = b"".join(_pack_row(number[name], one) for one in part)
            blocks.append(zlib.compress(raw))
            first = struct.pack("<2I", number[name], part[0].start)
            end = number[name], max(one.end for one in part)
            entry = struct.pack("<2I2Q", *end, where, len(blocks[-1]))
            leaves.append(_Leaf(first, end, first + entry))
            where, widest = where + len(blocks[-1]), max(widest, len(raw))
    head = struct.pack("<2IQ", _INDEX, _count_children(leaves), len(ordered))
    head += _name_bounds(leaves) if leaves else bytes(16)
    head += struct.pack("<Q2I", where, _ROWS, 0)
    index = head + _write_tree(leaves, where + len(head), _name_bounds)
    width = 3 + len(fields)
    header = struct.pack(
        "<I2H3Q2H2QIQ", _MAGIC, 4, 0, at + len(summary), data, where, width, min(width, 12), 64,
        at, widest, 0,
    )  # fmt: skip
    body = (struct.pack("<Q", len(ordered)), *blocks, index, struct.pack("<I", _MAGIC))
    write_bytes(path, b"".join((header, schema, summary, tree, *body)))


def _pack_row(contig: int, one: BedRow) -> bytes:
    text = "\t".join(map(str, one.more)).encode()
    return struct.pack("<3I", contig, one.start, one.end) + text + b"\0"


def _name_bounds(leaves: Sequence[_Leaf]) -> bytes:
    return leaves[0].first + struct.pack("<2I", *max(one.end for one in leaves))


def _write_contigs(contigs: Mapping[str, int], number: Mapping[str, int], at: int) -> bytes:
    wide = max((len(name.encode()) for name in number), default=1)
    keys = {name: name.encode().ljust(wide, b"\0") for name in number}
    leaves = [
        _Leaf(key, (0, 0), key + struct.pack("<2I", number[name], contigs[name]))
        for name, key in keys.items()
    ]
    head = struct.pack("<4I2Q", _CONTIGS, _count_children(leaves), wide, 8, len(leaves), 0)
    return head + _write_tree(leaves, at + len(head), lambda some: some[0].first)


def _count_children(leaves: Sequence[_Leaf]) -> int:
    """Of a node, at most."""
    return max(256, isqrt(len(leaves)) + 1)


def _write_tree(leaves: Sequence[_Leaf], at: int, key: Callable[[Sequence[_Leaf]], bytes]) -> bytes:
    """A tree that begins at byte `at` of the file."""
    most = _count_children(leaves)
    nodes = [leaves[i : i + most] for i in range(0, len(leaves), most)] or [[]]
    packed = [_pack_node([one.entry for one in node], is_leaf=True) for node in nodes]
    if len(nodes) == 1:
        return packed[0]
    where, above = at + 4 + len(nodes) * (len(key(leaves)) + 8), []
    for node, raw in zip(nodes, packed, strict=True):
        above.append(key(node) + struct.pack("<Q", where))
        where += len(raw)
    return _pack_node(above, is_leaf=False) + b"".join(packed)


def _pack_node(entries: Sequence[bytes], *, is_leaf: bool) -> bytes:
    return struct.pack("<2BH", is_leaf, 0, len(entries)) + b"".join(entries)
