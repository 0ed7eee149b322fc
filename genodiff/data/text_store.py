"""The store of a text: the tokens of all its documents in one file to map into memory, as `store`
has it for genomes.

    tokens.ids     ids, one after another, in the smallest unsigned type that holds the vocabulary
    starts.npy     (documents + 1,) int64: where each document begins
    bytes.npy      (documents,) int64: its length in bytes of UTF-8
    hashes.npy     (documents,) uint64: of its text; equal documents have equal hashes
    manifest.json  what it was made from, and the sha256 of the ids

The documents of a split (or of "all", which is cut) stand together and are the store's "contigs".
Each document is followed by the end token where the recipe has `ends`. `text_build` writes it.
"""

import logging
import shutil
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.data.recipe import SPLITS
from genodiff.data.splits import Intervals, Splits
from genodiff.data.store import (
    Store,
    StoreSource,
    has_key,
    identify_source,
    read_manifest,
    refuse_changed,
)
from genodiff.data.text_build import FEW, FORMAT, build, list_sources
from genodiff.data.text_recipe import TextRecipe
from genodiff.data.tokenizer import Tokenizer
from genodiff.errors import DataError, format_count
from genodiff.io import atomic
from genodiff.io.file_kinds import sha256_file, sha256_json
from genodiff.io.target import cache_dir, lock_folder

log = logging.getLogger("genodiff")

_HELD_OUT = 0.05


class TextStore(Store):
    """A built text, open for reading."""

    ids_file = "tokens.ids"

    def __init__(
        self, path: Path, recipe: TextRecipe, source: StoreSource, tokenizer: Tokenizer
    ) -> None:
        """Open the store in folder `path`. Raises `DataError` unless it is whole and fits."""
        manifest = _read_text_manifest(path)
        contigs = {part["name"]: part["tokens"] for part in manifest["parts"]}
        super().__init__(path, source, manifest, contigs, recipe.digest())
        self.vocabulary, self.token_bytes = tokenizer.vocabulary, tokenizer.token_bytes()
        self.splits = self._split(recipe)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where each document begins in `flat`, and the end of the last."""
        return _map(self.path, "starts")

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """A hash of each document's text."""
        return _map(self.path, "hashes")

    def identity(self) -> dict[str, Any]:
        """As `Store.identity`, with the tokenizer."""
        own = self.vocabulary
        told = {"tokenizer": own.name, "tokenizer_sha256": own.tokenizer_sha256}
        return super().identity() | told

    def _describe_change(self, remembered: dict[str, Any]) -> DataError:
        fix = "restore it, or start a new run with another --out"
        was, now = str(remembered.get("tokenizer_sha256")), self.vocabulary.tokenizer_sha256
        if was != now:
            what = "the tokenizer has changed since the run started"
            return DataError(f"{what}: sha256 {now[:12]}, but was {was[:12]}", fix=fix)
        what = f"the recipe has changed since the run started: {self.recipe_digest}, but was "
        what += str(remembered.get("recipe_digest"))
        return DataError(what, file=self.source.path, fix=fix)

    def documents(self, split: str) -> NDArray[np.int64]:
        """The numbers of the documents that begin in a split, ascending."""
        starts, found = np.asarray(self.starts[:-1]), []
        part = self.splits.intervals[split]
        base = self.offsets[part.contig]
        for edges in np.stack([base + part.start, base + part.end], 1):
            found.append(np.arange(*np.searchsorted(starts, edges)))
        return np.concatenate([*found, np.zeros(0, np.int64)])

    def duplicates(self) -> dict[str, int]:
        """How many documents of valid and of test stand in train, too, letter for letter."""
        of = {split: np.asarray(self.hashes)[self.documents(split)] for split in SPLITS}
        return {s: int(np.isin(of[s], of["train"]).sum()) for s in ("valid", "test")}

    def bytes_of(self, start: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.float64]:
        """See `Store.bytes_of`; a tokenizer that loses text spreads a document's bytes."""
        if self.token_bytes is not None:
            table = self.token_bytes
            pieces = (self.flat[a : a + n] for a, n in zip(start, length, strict=True))
            return np.array([int(table[piece].sum()) for piece in pieces], np.float64)
        starts = np.asarray(self.starts)
        before = np.concatenate(([0], np.cumsum(_map(self.path, "bytes"))))

        def until(position: NDArray[np.int64]) -> NDArray[np.float64]:
            i = np.minimum(np.searchsorted(starts, position, "right") - 1, len(starts) - 2)
            share = (position - starts[i]) / np.maximum(starts[i + 1] - starts[i], 1)
            found: NDArray[np.float64] = before[i] + share * (before[i + 1] - before[i])
            return found

        return until(np.asarray(start + length)) - until(np.asarray(start))

    def _split(self, recipe: TextRecipe) -> Splits:
        """The splits; one without files is cut from the end of train, at a document's beginning."""
        number = {name: i for i, name in enumerate(self.names) if self.contigs[name]}
        notes: list[str] = []
        donor = next((name for name in ("all", "train", "valid", "test") if name in number), None)
        if donor is None:
            raise DataError("contains no token", file=self.source.path, fix="give a file with text")
        own = [s for s in SPLITS if s in number and s != donor]
        rows = {s: [(number[s], 0, self.contigs[s])] if s in own else [] for s in SPLITS}
        missing = [s for s in ("valid", "test") if not rows[s]]
        if donor in ("valid", "test"):
            cut = " and ".join(missing)
            note = f"it has no file of train: its {donor} trains in that place, and of its end "
            notes.append(f"{note}{cut} is held out")
        elif missing and donor == "train" and not recipe.split_by_hash:
            cut = " and ".join(missing)
            notes.append(f"it has no file of {cut}: the end of train is held out instead")
        end = self.contigs[donor]
        for split in reversed(missing):
            part = recipe.cut.get(split, _HELD_OUT) if donor in ("all", "train") else _HELD_OUT  # type: ignore[call-overload]
            size = int(part * self.contigs[donor]) if part < 1 else int(part)
            start = self._document_at(number[donor], max(0, end - size))
            rows[split], end = [(number[donor], start, end)], start
        rows["train"] = sorted([*rows["train"], (number[donor], 0, end)])
        if missing and (donor == "all" or recipe.split_by_hash):
            held = {s: sum(b - a for _, a, b in rows[s]) for s in missing}
            shares = ", ".join(f"{s} {n / self.contigs[donor]:.1%}" for s, n in held.items())
            by_hash = f"no document fell to {' and '.join(missing)}: {shares} of the end of train"
            one = f"one text, split by position: {shares} of its end, the rest trains"
            notes.append(one if donor == "all" else f"{by_hash} is held out")
        return Splits({s: Intervals.of(rows[s]) for s in SPLITS}, tuple(notes))

    def _document_at(self, contig: int, place: int) -> int:
        """Return the start of the document that contains `place`; of fewer than `FEW`, `place`."""
        base, end = int(self.offsets[contig]), int(self.offsets[contig + 1])
        first, last = np.searchsorted(np.asarray(self.starts), (base, end))
        if last - first < FEW:
            return place
        i = int(np.searchsorted(np.asarray(self.starts), base + place, "right")) - 1
        return int(self.starts[i]) - base


def build_text_store(
    recipe: TextRecipe,
    text: str | Path | None,
    tokenizer: Tokenizer,
    *,
    offline: bool = False,
    force: bool = False,
    remembered: dict[str, Any] | None = None,
) -> TextStore:
    """The store of `recipe`, from the file or folder `text` in place of the recipe's source; built
    once, then found again.

    As `build_store`. Raises `DataError`: the text is missing, is not sound UTF-8, or holds nothing
    to read.
    """
    files, notes = list_sources(recipe, text, offline=offline)
    source = identify_source([path for _, path in files])
    hashes = [[bucket, sha256_file(path)] for bucket, path in files]
    content = sha256_json({"files": hashes}, compact=True)
    if len(files) > 1:
        source = source._replace(sha256=content)
    if remembered is not None:
        refuse_changed(source, remembered)
    decisive = {"documents", "fields", "columns", "detokenizer", "ends", "split_by_hash"}
    made = {"format": FORMAT, "vocabulary": tokenizer.vocabulary.fingerprint(), "source": content}
    made["reading"] = recipe.model_dump(mode="json", include=decisive)
    key = sha256_json(made, compact=True)
    folder = cache_dir() / "stores" / key[:32]
    with lock_folder(folder, "builds the same store"):
        fresh = force or not has_key(_read_text_manifest, folder, key)
        if fresh:
            shutil.rmtree(folder, ignore_errors=True)
            atomic.clear_leftovers(folder.parent)
            build(folder, key, recipe, files, tokenizer, source)
        store = TextStore(folder, recipe, source, tokenizer)
    for note in (*notes, *store.splits.notes):
        log.warning("%s: %s", source.path, note)
    if fresh:
        for split, n in store.duplicates().items():
            if n:
                log.warning(
                    "%s: %s of %s also in train", source.path, format_count(n, "document"), split
                )
    return store


def _map(folder: Path, name: str) -> NDArray[Any]:
    found: NDArray[Any] = np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
    return found


def _read_text_manifest(folder: Path) -> dict[str, Any]:
    def fits(manifest: dict[str, Any]) -> bool:
        n = manifest["documents"]
        size = (folder / "tokens.ids").stat().st_size
        rows = {name: len(_map(folder, name)) for name in ("starts", "bytes", "hashes")}
        whole = size == manifest["tokens"] * np.dtype(manifest["dtype"]).itemsize
        right = rows == {"starts": n + 1, "bytes": n, "hashes": n}
        return bool(whole and manifest["format"] == FORMAT and right)

    return read_manifest(folder, fits)
