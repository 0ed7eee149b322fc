"""The store of a genome, and how it is built or found again.

    genome.ids     one byte for each base: `id | SOFT` (SOFT = 0x80 where the FASTA has lower case);
                   contigs stand one after another in file order
    n_runs.npy     runs of N, so that windows are chosen without touching the sequence
    manifest.json  what it was made from

The key is the sha256 of (format, alphabet, content of the source, contigs left out).
"""

import atexit
import logging
import shutil
import tempfile
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import DNA, SOFT
from genodiff.data.dna_build import (
    FORMAT,
    Content,
    build_folder,
    make_toy_contents,
    read_dna_manifest,
    read_file_contents,
)
from genodiff.data.fetch import fetch, forget
from genodiff.data.recipe import Recipe
from genodiff.data.splits import resolve
from genodiff.data.store import (
    Store,
    StoreSource,
    has_key,
    identify_source,
    refuse_changed,
    require_regular_file,
    stamp_file,
)
from genodiff.data.toy import ToySource
from genodiff.errors import DataError
from genodiff.io import atomic
from genodiff.io.cache import cache_dir, lock_folder
from genodiff.io.identity import sha256_json
from genodiff.io.planning import GENOME_BYTES, is_planning

log = logging.getLogger("genodiff")


class DnaStore(Store):
    """A built genome, open for reading."""

    ids_file = "genome.ids"
    share = 1.0
    """The part of the genome that it holds; less than 1 in a plan alone."""

    def __init__(
        self, path: Path, recipe: Recipe, source: StoreSource, *, exact: bool = False
    ) -> None:
        """Open the store in folder `path`.

        Raises `DataError` where it is damaged or does not fit the recipe.
        """
        manifest = read_dna_manifest(path)
        contigs = {c["name"]: c["length"] for c in manifest["contigs"]}
        super().__init__(path, source, manifest, contigs, recipe.digest())
        self.splits = resolve(recipe, contigs, source.path or recipe.name, exact=exact)

    def read_ids(self, start: int, end: int) -> NDArray[np.int64]:
        """See `Store.read_ids`: without the soft mask."""
        return super().read_ids(start, end) & ~SOFT

    @cached_property
    def n_runs(self) -> NDArray[np.int64]:  # type: ignore[override]
        """See `Store.n_runs`; a run never crosses a contig's end."""
        return np.load(self.path / "n_runs.npy", allow_pickle=False)

    def _describe_change(self, remembered: dict[str, Any]) -> DataError:
        what = "the splits have changed since the run started: the recipe's digest is "
        what += f"{self.recipe_digest}, but was {remembered.get('recipe_digest')}"
        fix = "use the same recipe and --bed, or start a new run with another --out"
        return DataError(what, file=self.source.path, fix=fix)


def _find_place(recipe: Recipe, source_sha256: str) -> tuple[str, Path]:
    """The key of the store of a source, and its folder."""
    decisive = {"format": FORMAT, "alphabet": DNA.fingerprint(), "source": source_sha256}
    key = sha256_json(decisive | {"ignore": recipe.ignore}, compact=True)
    return key, cache_dir() / "stores" / key[:32]


def find_dna_store(recipe: Recipe, remembered: dict[str, Any]) -> DnaStore | None:
    """The store that a run remembers by its `identity`, if it is in the cache, or None.

    Its source is not read. Raises `DataError` where the recipe's splits are not those of then.
    """
    sha256 = str(remembered.get("source_sha256"))
    key, folder = _find_place(recipe, sha256)
    if not has_key(read_dna_manifest, folder, key):
        return None
    path, size = remembered.get("source"), remembered.get("source_size")
    source = StoreSource(None if path is None else str(path), int(size or 0), sha256)
    store = DnaStore(folder, recipe, source)
    store.check_same(remembered)
    return store


def _build_head(
    recipe: Recipe, key: str, contents: Iterator[Content], source: StoreSource
) -> DnaStore:
    """The store that a plan reads: of a genome's beginning, in a temporary folder."""
    home = tempfile.TemporaryDirectory(prefix="genodiff-")
    atexit.register(home.cleanup)
    folder = Path(home.name) / "store"
    build_folder(folder, key, contents, source)
    store = DnaStore(folder, recipe, source)
    store.share = min(1.0, max(1, GENOME_BYTES) / max(1, source.size))
    return store


def build_dna_store(
    recipe: Recipe,
    fasta: str | Path | None = None,
    *,
    offline: bool = False,
    force: bool = False,
    remembered: dict[str, Any] | None = None,
    tell_splits: bool = True,
) -> DnaStore:
    """The store of `recipe`, from `fasta` in place of the recipe's source where given; built once,
    then found again.

    Safe to call from many processes at once. `force` builds it again. With the `identity` that a
    run remembered, a source that has changed since is refused before it is read. What the splits
    had to leave out or make up is logged, with `tell_splits`. Raises `DataError`: the source is
    missing, is no exact FASTA, or is not the recipe's genome.
    """
    fetched = fasta is None and recipe.generator is None
    paths = [] if fasta is None else [require_regular_file(Path(fasta))]
    if fetched:
        paths = fetch(recipe, offline=offline)
    if paths:
        source, contents = identify_source(paths), read_file_contents(paths, recipe)
    else:
        toy = ToySource()
        source, contents = StoreSource(None, 0, toy.fingerprint()), make_toy_contents(toy)
    if remembered is not None:
        refuse_changed(source, remembered)
    key, folder = _find_place(recipe, source.sha256)
    if is_planning() and not has_key(read_dna_manifest, folder, key):
        return _build_head(recipe, key, contents, source)
    with lock_folder(folder, "builds the same store"):
        try:
            if force or not has_key(read_dna_manifest, folder, key):
                if folder.exists():
                    log.info("building again: %s", folder)
                    shutil.rmtree(folder)
                atomic.clear_leftovers(folder.parent)
                build_folder(folder, key, contents, source)
                if paths and stamp_file(paths[0]) != source.stamp:
                    shutil.rmtree(folder)
                    fix = "try again when it is complete"
                    raise DataError("changed while it was read", file=source.path, fix=fix)
            store = DnaStore(folder, recipe, source, exact=fetched)
        except DataError:
            if fetched:
                forget(recipe)
            raise
    for note in store.splits.notes if tell_splits else ():
        log.warning("%s: %s", source.path or recipe.name, note)
    return store
