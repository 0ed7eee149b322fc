"""A memory on disk: a folder that is complete or absent, mapped when it is opened.

    planes.npy     (3, bytes): the text, as in `memory/text.py`
    start.npy      (4^k + 1,) and at.npy: where each k-mer stands
    ends.npy       and jumps.npy in place of start.npy, of a sampled table (`tables.py`)
    counts.npy     (4^order, 4): how often each base follows each context, on both strands
    manifest.json  the sources, the sizes and hashes of the files, and what the memory was made from

The fingerprint is the sha256 of the manifest. A run that uses a memory remembers it, and refuses
another one.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import DataError
from genodiff.io import atomic
from genodiff.io.identity import sha256_file, sha256_json
from genodiff.memory.evidence import Chain
from genodiff.memory.memory import Memory
from genodiff.memory.tables import KmerTable, SampledTable
from genodiff.memory.text import MemoryText, TextStretch

FORMAT = 1
MANIFEST = "manifest.json"
FILES = ("planes", "start", "at", "counts")
SAMPLED_FILES = ("planes", "ends", "jumps", "at", "counts")
_AGAIN = "remove the folder; it is built again from the training genome"


def write_memory(folder: str | Path, memory: Memory, made_from: dict[str, Any], **more: Any) -> str:
    """Write a memory as a new folder, at once; returns its fingerprint.

    `made_from`: what decides the memory, as JSON values; `more` stands in the manifest, too. Where
    the folder is there already, it stays. Raises `MachineError` where it cannot be written.
    """
    arrays: dict[str, NDArray[Any]] = {
        "planes": memory.text.planes,
        **{name: x for name, x in memory.table._asdict().items() if name != "k"},
        "counts": memory.chain.counts,
    }
    with atomic.atomic_directory(folder, exist_ok=True) as new:
        for name, array in arrays.items():
            np.save(new / f"{name}.npy", array, allow_pickle=False)
        manifest = {
            "format": FORMAT,
            "made_from": made_from,
            "k": memory.table.k,
            "order": memory.chain.order,
            "size": memory.text.size,
            "stretches": [list(s) for s in memory.text.sources],
            "files": {
                name: {
                    "bytes": (new / f"{name}.npy").stat().st_size,
                    "sha256": sha256_file(new / f"{name}.npy"),
                }
                for name in arrays
            },
            **more,
        }
        atomic.write_json(new / MANIFEST, manifest)
    return fingerprint_memory(folder)


def fingerprint_memory(folder: str | Path) -> str:
    """The sha256 of a memory's manifest. Raises `DataError` where it is not whole."""
    return sha256_json(read_manifest(Path(folder)), compact=True)


def open_memory(
    folder: str | Path,
    *,
    made_from: dict[str, Any] | None = None,
    fingerprint: str | None = None,
    verify: bool = False,
) -> Memory:
    """The memory in a folder, mapped from its files, with the default numbers.

    Raises `DataError` where it is not whole, was made from something else than `made_from`, or has
    another `fingerprint`. With `verify`, all files are read and compared with their hashes.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    if made_from is not None and manifest["made_from"] != made_from:
        raise DataError(
            f"is the memory of other data: it was made from {_shorten(manifest['made_from'])}, "
            f"not from {_shorten(made_from)}",
            file=folder,
            fix="use the memory of the model's own training genome",
        )
    found = sha256_json(manifest, compact=True)
    if fingerprint is not None and found != fingerprint:
        raise DataError(
            f"is another memory: its fingerprint is {found}, but was {fingerprint}",
            file=folder,
            fix="bring the old memory back, or begin a new run",
        )
    arrays = {}
    for name in manifest["files"]:
        path = folder / f"{name}.npy"
        if verify and (read := sha256_file(path)) != manifest["files"][name]["sha256"]:
            raise DataError(
                f"has sha256 {read}, but was written as {manifest['files'][name]['sha256']}",
                file=path,
                fix=_AGAIN,
            )
        try:
            # Copy-on-write: the C library asks for memory that may be written, and never writes.
            arrays[name] = np.load(path, mmap_mode="c", allow_pickle=False)
        except (OSError, ValueError):
            raise DataError("is not an array", file=path, fix=_AGAIN) from None
    try:
        sources = tuple(TextStretch(*row) for row in manifest["stretches"])
        planes, counts = arrays.pop("planes"), arrays.pop("counts")
        text = MemoryText(planes, manifest["size"], sources)
        kind = KmerTable if "start" in arrays else SampledTable
        table = kind(manifest["k"], **arrays)
        if not table.is_whole:
            raise ValueError
    except (TypeError, ValueError):
        raise DataError("is not a whole memory", file=folder, fix=_AGAIN) from None
    return Memory(text, table, Chain(counts))


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a memory. Raises `DataError` where it does not fit the files beside it."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        names = tuple(manifest["files"])
        sizes = {name: (folder / f"{name}.npy").stat().st_size for name in names}
        if (
            manifest["format"] == FORMAT
            and {*names} in ({*FILES}, {*SAMPLED_FILES})
            and all(manifest["files"][name]["bytes"] == sizes[name] for name in names)
        ):
            manifest["made_from"], manifest["stretches"], manifest["size"], manifest["k"]
            return manifest
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise DataError("is not a whole memory", file=folder, fix=_AGAIN)


def _shorten(made_from: Any) -> str:
    return sha256_json(made_from, compact=True)[:12]


def identify_memory(told: dict[str, Any]) -> dict[str, Any]:
    """Return what of a memory's description decides every bit: all but its location."""
    return {name: value for name, value in told.items() if name not in ("folder", "source")}
