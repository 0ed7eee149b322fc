"""A memory inside a published folder: the training genome at 2 bits a base, and what it is of.

    FOLDER/memory/memory.safetensors   bases (2, bytes) uint8: the high and the low bit of each
                                       place of the text; gaps (runs, 2) int64: start and end of the
                                       places without a base
    FOLDER/memory/memory.json          sealed: the weights it belongs to, the memory's own manifest,
                                       its numbers, the contigs with lengths and hashes

The table of k-mers is not in it. It is built again when the memory is first opened, and kept in the
cache folder. The manifest that comes out must have the fingerprint of the one that was exported.
"""

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from genodiff.errors import CheckpointError, DataError
from genodiff.io import atomic
from genodiff.io.cache import cache_dir, lock_folder
from genodiff.io.file_kinds import find_plain_path
from genodiff.io.identity import sha256_file, sha256_json
from genodiff.memory.memory import (
    Memory,
    fingerprint_memory,
    open_memory,
    read_manifest,
    write_memory,
)
from genodiff.memory.numbers import MemoryNumbers
from genodiff.memory.search import Effort, is_effort
from genodiff.memory.tables import MOST_TABLE_K
from genodiff.memory.text import NONE, PAD, MemoryText
from genodiff.runs.known_contigs import KnownContigs
from genodiff.runs.sealed_files import FORMAT_VERSION, check_seal, check_version, read_json, seal
from genodiff.version import __version__

FOLDER, CARD, BASES = "memory", "memory.json", "memory.safetensors"
_AGAIN = "export the run again, with --with-memory"
_MOST_ORDER = 12
_KEYS = {
    "format_version", "genodiff", "checkpoint", "fingerprint", "manifest", "numbers", "effort",
    "contigs", "file", "seal",
}  # fmt: skip


def has_memory(folder: Path) -> bool:
    """Whether a published folder or a run has a memory inside."""
    return (folder / FOLDER).is_dir()


def embed_memory(
    folder: Path, memory: Memory, source: Path, contigs: KnownContigs, checkpoint: str
) -> dict[str, Any]:
    """Put a memory, whose files are in `source`, into `folder`; returns what a card says of it.

    `checkpoint` is the digest of the weights. Raises `MachineError` where it cannot be written.
    """
    manifest, own = read_manifest(source), {s.contig for s in memory.text.sources}
    with atomic.atomic_directory(folder / FOLDER) as new:
        save_file(pack_text(memory.text), find_plain_path(new / BASES))
        file = {"bytes": (new / BASES).stat().st_size, "sha256": sha256_file(new / BASES)}
        card = {
            "format_version": FORMAT_VERSION,
            "genodiff": __version__,
            "checkpoint": checkpoint,
            "fingerprint": sha256_json(manifest, compact=True),
            "manifest": manifest,
            "numbers": memory.numbers.model_dump(mode="json"),
            "effort": asdict(memory.effort),
            "contigs": [list(row) for row in contigs.list_rows(own)],
            "file": file,
        }
        atomic.write_json(new / CARD, seal(card))
    return {"bases": memory.text.n_bases, "fingerprint": card["fingerprint"], **file}


def open_embedded(folder: Path, checkpoint: str) -> tuple[Memory, Path, KnownContigs]:
    """The memory in `folder`, where its files are mapped from, and the contigs that it knows.

    Raises `CheckpointError` where it is damaged or belongs to other weights than `checkpoint`.
    """
    card = read_embedded(folder)
    if card["checkpoint"] != checkpoint:
        what = f"belongs to the weights {card['checkpoint']}, and these are {checkpoint}"
        raise CheckpointError(what, file=folder / FOLDER / CARD, fix=_AGAIN)
    numbers = MemoryNumbers.parse(
        card["numbers"], file=folder / FOLDER / CARD, error=CheckpointError
    )
    wanted, manifest = card["fingerprint"], card["manifest"]
    place = _find_place(wanted, manifest)
    with lock_folder(place, "builds the same memory"):
        if not place.exists():
            _build(folder, card, place)
    memory = open_memory(place, fingerprint=wanted).with_numbers(numbers)
    memory = memory.with_effort(Effort(**card["effort"]))
    rows = [(str(name), int(length), str(digest)) for name, length, digest in card["contigs"]]
    return memory, place, KnownContigs.of_rows(rows, manifest["made_from"].get("content"))


def read_embedded(folder: Path, *, verify: bool = False) -> dict[str, Any]:
    """The judged `memory.json` of a folder; with `verify` the bases are compared with its hash.

    Raises `CheckpointError` for the first fault.
    """
    path = folder / FOLDER / CARD
    card = read_json(path)
    check_version(card, path)
    if card.keys() != _KEYS:
        odd = sorted(card.keys() ^ _KEYS)[0]
        raise CheckpointError(f"the key '{odd}' is missing or unknown", file=path, fix=_AGAIN)
    check_seal(card, path, _AGAIN)
    if not _is_sane(card):
        raise CheckpointError("holds a value that cannot be meant", file=path, fix=_AGAIN)
    if sha256_json(card["manifest"], compact=True) != card["fingerprint"]:
        what = "has a manifest of another fingerprint than its own"
        raise CheckpointError(what, file=path, fix=_AGAIN)
    bases = folder / FOLDER / BASES
    if not bases.is_file() or bases.is_symlink():
        raise CheckpointError("is missing (not found)", file=bases, fix=_AGAIN)
    size = bases.stat().st_size
    if size != card["file"]["bytes"]:
        what = (
            f"has {size:,} bytes, but was written with {card['file']['bytes']:,}: it is cut short"
        )
        raise CheckpointError(what, file=bases, fix=_AGAIN)
    if verify and (found := sha256_file(bases)) != card["file"]["sha256"]:
        what = f"has sha256 {found}, but was written as {card['file']['sha256']}"
        raise CheckpointError(what, file=bases, fix=_AGAIN)
    return card


def pack_text(text: MemoryText) -> dict[str, NDArray[Any]]:
    """The text at 2 bits a place, and the runs of places without a base."""
    first, length = PAD // 8, (text.size + 7) // 8
    bases = np.ascontiguousarray(text.planes[:2, first : first + length])
    is_base = np.unpackbits(text.planes[2, first : first + length], bitorder="little")
    edges = np.flatnonzero(np.diff(1 - is_base[: text.size].astype(np.int8), prepend=0, append=0))
    return {"bases": bases, "gaps": edges.reshape(-1, 2).astype(np.int64)}


def unpack_stretches(
    bases: NDArray[np.uint8], gaps: NDArray[np.int64], sources: list[list[Any]]
) -> list[tuple[str, int, NDArray[np.uint8]]]:
    """The stretches of a packed text: each its contig, its start there and its codes.

    Raises `ValueError` where they do not fit one another.
    """
    size = sum(int(length) + 1 for _, _, length in sources)
    if bases.shape != (2, (size + 7) // 8) or bases.dtype != np.uint8:
        raise ValueError(f"bases of {bases.shape} do not hold {size} places")
    if gaps.ndim != 2 or gaps.shape[1] != 2 or gaps.min(initial=0) < 0:
        raise ValueError("gaps are no intervals")
    high, low = (np.unpackbits(row, bitorder="little", count=size) for row in bases)
    codes = 2 * high + low
    for start, end in gaps.tolist():
        codes[start:end] = NONE
    found, at = [], 0
    for contig, start, length in sources:
        found.append((str(contig), int(start), codes[at : at + int(length)]))
        at += int(length) + 1
    return found


def _is_sane(card: dict[str, Any]) -> bool:
    """Whether the values of a card have their types, and numbers that a memory can have."""
    try:
        manifest, file = card["manifest"], card["file"]
        whole = (manifest["k"], manifest["order"], manifest["size"], file["bytes"])
        words = (card["checkpoint"], card["fingerprint"], file["sha256"])
        return (
            all(type(x) is int for x in whole)
            and all(isinstance(x, str) for x in words)
            and isinstance(manifest["made_from"], dict)
            and 1 <= manifest["k"] <= MOST_TABLE_K
            and 1 <= manifest["order"] <= _MOST_ORDER
            and is_effort(card["effort"])
            and all(_is_row(row, str, int, int) for row in manifest["stretches"])
            and all(_is_row(row, str, int, str) for row in card["contigs"])
        )
    except (KeyError, TypeError, AttributeError):
        return False


def _is_row(row: Any, *kinds: type) -> bool:
    return (
        isinstance(row, list)
        and [type(x) for x in row] == [*kinds]
        and all(x >= 0 for x in row if type(x) is int)
    )


def _find_place(fingerprint: str, manifest: dict[str, Any]) -> Path:
    """The cache folder of an embedded memory; that of the training genome's own, if it is there.

    Its own folder is named by the fingerprint, so nothing that is made from a published folder is
    taken for the memory of a genome that is at hand.
    """
    memories = cache_dir() / "memories"
    own = memories / sha256_json(manifest["made_from"], compact=True)[:32]
    try:
        if own.exists() and fingerprint_memory(own) == fingerprint:
            return own
    except DataError:
        pass
    return memories / sha256_json({"published": fingerprint}, compact=True)[:32]


def _build(folder: Path, card: dict[str, Any], place: Path) -> None:
    """Build a memory from its bases. Raises `CheckpointError` where it is another one."""
    read_embedded(folder, verify=True)
    path, manifest = folder / FOLDER / BASES, card["manifest"]
    try:
        held = load_file(find_plain_path(path))
        stretches = unpack_stretches(held["bases"], held["gaps"], manifest["stretches"])
        memory = Memory.build(stretches, k=int(manifest["k"]), order=int(manifest["order"]))
    except (SafetensorError, KeyError, ValueError, TypeError, OSError):
        raise CheckpointError("is not a whole memory", file=path, fix=_AGAIN) from None
    atomic.clear_leftovers(place.parent)
    if write_memory(place, memory, manifest["made_from"]) != card["fingerprint"]:
        shutil.rmtree(place)
        what = "gives another memory than was exported: its fingerprint differs"
        raise CheckpointError(what, file=path, fix=_AGAIN)
