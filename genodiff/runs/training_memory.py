"""The memory of a store's split: built once, kept in the cache folder, found again by its key."""

import logging
from pathlib import Path

from genodiff.data.splits import stretch_intervals
from genodiff.data.store import Store
from genodiff.data.stretches import Coded
from genodiff.errors import DataError
from genodiff.io import atomic
from genodiff.io.cache import cache_dir, lock_folder
from genodiff.io.identity import sha256_json
from genodiff.memory.evidence import ORDER
from genodiff.memory.index_files import FORMAT, open_memory, write_memory
from genodiff.memory.memory import Memory

_log = logging.getLogger("genodiff")


def list_stretches(
    store: Store, split: str, *, legacy_caduceus_tiling: bool = False
) -> list[tuple[str, int, Coded]]:
    """The intervals of a split: each its contig, its start there and its codes, read one by one."""
    intervals = store.intervals_of(split)
    if legacy_caduceus_tiling:
        intervals = stretch_intervals(intervals, store.lengths)
    rows = zip(
        intervals.contig.tolist(), intervals.start.tolist(), intervals.end.tolist(), strict=True
    )
    return [
        (store.names[c], a, Coded(store.flat[store.offsets[c] + a : store.offsets[c] + b]))
        for c, a, b in rows
    ]


def open_split_memory(
    store: Store,
    split: str = "train",
    *,
    k: int | None = None,
    legacy_caduceus_tiling: bool = False,
    folder: str | Path | None = None,
) -> Memory:
    """The memory of a split of a genome's store. It is built where it is not in the cache.

    `folder`: in place of the cache's own. A folder that holds the memory of something else is
    refused. Raises `DataError` for that, and where the split is empty or too long for a memory.
    """
    stretches = list_stretches(store, split, legacy_caduceus_tiling=legacy_caduceus_tiling)
    if not stretches:
        fix = "choose a split that has intervals"
        raise DataError(f"split {split} holds nothing to remember", file=store.path, fix=fix)
    made_from = {
        "format": FORMAT,
        "content": store.manifest["key"],
        "intervals": sha256_json([[name, a, len(c)] for name, a, c in stretches], compact=True),
        "k": k,
        "order": ORDER,
    }
    own = cache_dir() / "memories" / sha256_json(made_from, compact=True)[:32]
    place = own if folder is None else Path(folder)
    with lock_folder(place, "builds the same memory"):
        if not place.exists():
            atomic.clear_leftovers(place.parent)
            _log.info("building the memory of %s: %s", split, place)
            write_memory(place, Memory.build(stretches, k=k), made_from)
    return open_memory(place, made_from=made_from)
