"""Building the store of a text: documents are read, cleaned, dealt to splits and tokenised, piece
by piece.

A corpus may exceed memory: what is held are 24 bytes for each document and a few million
characters. A document that is a whole file is tokenised in pieces: for tokenizers of words they are
cut before a blank, where no token begins or ends within a word.

Files out of a fetched archive (zip or tar): only those asked for by name, as plain files, whole
or absent.
"""

import fnmatch
import gzip
import hashlib
import itertools
import json
import logging
import lzma
import os
import re
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from genodiff.data.documents import Piece, read_pieces
from genodiff.data.fetch import fetch
from genodiff.data.store import StoreSource
from genodiff.data.text_recipe import BUCKETS, TextRecipe, list_files
from genodiff.data.tokenizer import Tokenizer
from genodiff.domain import TEXT
from genodiff.errors import DataError
from genodiff.io import atomic
from genodiff.io.file_kinds import sha256_file
from genodiff.io.file_lock import hold_file
from genodiff.io.input_file import open_input
from genodiff.io.target import write_error
from genodiff.vocabulary import Vocabulary

log = logging.getLogger("genodiff")

FORMAT = 1
FEW = 40
"""Fewer documents than this are not dealt by hash but cut by position."""

_CHARACTERS_AT_A_TIME = 1 << 20
_SAFE_CUT = re.compile(r"(?<=\S) (?=\S)")


def list_sources(
    recipe: TextRecipe, text: str | Path | None, *, offline: bool = False
) -> tuple[list[tuple[str, Path]], list[str]]:
    """(split or "all", file) of `text` or the recipe's own files, fetched where needed; notes."""
    if text is not None:
        given = Path(text)
        if not given.is_dir():
            with open_input(given):
                pass
        return list_files(recipe, given)
    fetched = fetch(recipe, offline=offline)
    paths: list[Path] = []
    for source, path in zip(recipe.sources, fetched, strict=True):
        paths += unpack(path, source.members) if source.members is not None else [path]
    named = [(bucket, path) for path in paths if (bucket := recipe.bucket(path)) is not None]
    return sorted(named, key=lambda item: (BUCKETS.index(item[0]), item[1])), []


class _Part:
    def __init__(self, name: str, file: IO[bytes]) -> None:
        self.name, self.file = name, file
        self.tokens = 0
        self.lengths, self.bytes, self.hashes = array("q"), array("q"), array("Q")


class _Writer:
    """Takes documents piece by piece, tokenises many at a time, and writes each to its part."""

    def __init__(self, folder: Path, tokenizer: Tokenizer, dtype: str, ends: bool) -> None:
        self.folder, self.tokenizer, self.dtype = folder, tokenizer, dtype
        self.end = np.array([tokenizer.vocabulary.end_id] if ends else [], dtype)
        self.parts: dict[str, _Part] = {}
        self._waiting: list[tuple[str, str, int | None]] = []
        """Text, part, and hash where the document ends."""
        self._size = 0

    def add(self, text: str, part: str, digest: int | None) -> None:
        """Some text of a document of `part`; `digest` comes with its last."""
        self._waiting.append((text, part, digest))
        self._size += len(text)
        if self._size >= _CHARACTERS_AT_A_TIME:
            self.flush()

    def flush(self) -> None:
        """Tokenise and write what waits."""
        encoded = self.tokenizer.encode([text for text, _, _ in self._waiting])
        for ids, (text, name, digest) in zip(encoded, self._waiting, strict=True):
            part = self.parts.get(name)
            if part is None:
                part = self.parts[name] = _Part(name, open(self.folder / f"{name}.ids", "wb"))  # noqa: SIM115
                part.lengths.append(0)
                part.bytes.append(0)
            part.file.write(np.ascontiguousarray(ids, self.dtype).data)
            part.lengths[-1] += len(ids)
            part.bytes[-1] += len(text.encode())
            if digest is not None:
                part.file.write(self.end.data)
                part.lengths[-1] += len(self.end)
                part.tokens += part.lengths[-1]
                part.hashes.append(digest)
                part.lengths.append(0)
                part.bytes.append(0)
        self._waiting, self._size = [], 0


def build(
    folder: Path,
    key: str,
    recipe: TextRecipe,
    files: list[tuple[str, Path]],
    tokenizer: Tokenizer,
    source: StoreSource,
) -> None:
    """Write a store, whole or not at all. Raises `DataError`, `MachineError`."""
    vocabulary: Vocabulary = tokenizer.vocabulary
    dtype = np.min_scalar_type(vocabulary.n_tokens - 1).name
    with atomic.atomic_directory(folder) as temporary:
        writer = _Writer(temporary, tokenizer, dtype, recipe.ends)
        last: Path | None = None
        try:
            dealt = deal_texts(recipe, files, cut_anywhere=not tokenizer.files)
            for text, name, digest, last in dealt:  # noqa: B007
                writer.add(text, name, digest)
            writer.flush()
        except DataError as fault:
            if fault.file is None:  # a tokenizer does not know where its text comes from
                raise DataError(fault.what, file=last, fix=fault.fix) from None
            raise
        finally:
            for part in writer.parts.values():
                part.file.close()
        made = [writer.parts[bucket] for bucket in BUCKETS if bucket in writer.parts]
        if not made:
            what = "is empty or holds only white space: no text"
            raise DataError(what, file=source.path, fix="give a file with text")
        with open(temporary / f"{made[0].name}.ids", "ab") as out:
            for part in made[1:]:
                with open(temporary / f"{part.name}.ids", "rb") as more:
                    shutil.copyfileobj(more, out, 1 << 24)
                (temporary / f"{part.name}.ids").unlink()
        (temporary / f"{made[0].name}.ids").rename(temporary / "tokens.ids")
        lengths = np.concatenate([np.array(p.lengths[:-1], np.int64) for p in made])
        np.save(temporary / "starts.npy", np.concatenate(([0], np.cumsum(lengths))))
        for name, kind in (("bytes", np.int64), ("hashes", np.uint64)):
            parts = [np.array(getattr(p, name)[: len(p.hashes)], kind) for p in made]
            np.save(temporary / f"{name}.npy", np.concatenate(parts))
        manifest = {
            "format": FORMAT,
            "key": key,
            "domain": TEXT.name,
            "vocabulary": vocabulary.to_json(),
            "dtype": dtype,
            "ids_sha256": sha256_file(temporary / "tokens.ids"),
            "tokens": int(lengths.sum()),
            "documents": len(lengths),
            "parts": [
                {"name": p.name, "tokens": p.tokens, "documents": len(p.hashes)}
                | {"bytes": sum(p.bytes)}
                for p in made
            ],
            "source": source.describe(),
            "files": [[bucket, path.name] for bucket, path in files],
        }
        (temporary / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    said = f"{len(lengths)} document{'s' * (len(lengths) != 1)}, {lengths.sum()} tokens"
    log.info("built the store of %s: %s (%s)", source.path, said, vocabulary.name)


def deal_texts(
    recipe: TextRecipe, files: Iterable[tuple[str, Path]], cut_anywhere: bool
) -> Iterator[tuple[str, str, int | None, Path]]:
    """(text, split or "all", hash at a document's end, file) in the order of reading."""
    for bucket, group in itertools.groupby(files, key=lambda item: item[0]):
        stream = ((piece, path) for _, path in group for piece in read_pieces(recipe, path))
        head: list[tuple[Piece, Path]] = []
        n = 0
        if recipe.split_by_hash and bucket == "all":
            for piece, path in stream:
                head.append((piece, path))
                n += piece.last
                if n >= FEW:
                    break
        by_hash = n >= FEW
        yield from _texts(itertools.chain(head, stream), bucket, by_hash, cut_anywhere)


def _texts(
    stream: Iterable[tuple[Piece, Path]], bucket: str, by_hash: bool, cut_anywhere: bool
) -> Iterator[tuple[str, str, int | None, Path]]:
    digest, rest = hashlib.blake2b(digest_size=8), ""
    held: list[str] = []  # of a document whose part is known only at its end
    for piece, path in stream:
        digest.update(piece.text.encode())
        text, rest = rest + piece.text, ""
        if by_hash:
            held.append(text)
            text = ""
        if piece.last:
            number = int.from_bytes(digest.digest(), "little")
            part = {0: "valid", 1: "test"}.get(number % 20, "train") if by_hash else bucket
            yield "".join(held) + text, part, number, path
            digest, held = hashlib.blake2b(digest_size=8), []
        elif not by_hash:
            at = len(text)
            if not cut_anywhere:
                at = max((m.start() for m in _SAFE_CUT.finditer(text)), default=0)
            if at:
                yield text[:at], bucket, None, path
            rest = text[at:]


_AGAIN = "download it again"
_MOST_GROWTH, _ALWAYS_FINE = 200, 1 << 24  # unpacked bytes for one packed; bytes that may be anyway


def unpack(archive: Path, members: str) -> list[Path]:
    """The files of `archive` whose names match `members`, in a folder beside it, under their bare
    names; sorted.

    Unpacked once. Links, devices and paths are never followed. Raises `DataError` where the archive
    is damaged, holds no such file, or would unpack to 200 times its size (text takes 3 to 10);
    `MachineError` where there is no room.
    """
    folder = archive.with_name(f"{archive.name}.files")
    with hold_file(f"{folder}.lock", "unpacks the same archive"):
        if not folder.is_dir():
            temporary = Path(tempfile.mkdtemp(dir=archive.parent, prefix=".unpack-"))
            most = max(_ALWAYS_FINE, _MOST_GROWTH * archive.stat().st_size)
            try:
                found = size = 0
                for name, stream in _members(archive, members):
                    found += 1
                    with open(temporary / Path(name).name, "xb") as out:
                        while block := stream.read(1 << 22):
                            size += len(block)
                            if size > most:
                                what = f"unpacks to more than {_MOST_GROWTH} times its size"
                                raise DataError(f"{what}: refused", file=archive, fix=_AGAIN)
                            out.write(block)
                if not found:
                    raise DataError(f"holds no file named {members}", file=archive, fix=_AGAIN)
                os.rename(temporary, folder)
            except (
                zipfile.BadZipFile,
                tarfile.TarError,
                zlib.error,
                lzma.LZMAError,
                gzip.BadGzipFile,
                EOFError,
                FileExistsError,
                NotImplementedError,  # a way of packing that zipfile does not know
                RuntimeError,  # encrypted
            ) as fault:
                what = f"is no sound archive ({str(fault)[:80]})"
                raise DataError(what, file=archive, fix=_AGAIN) from None
            except OSError as fault:
                raise write_error(folder, fault) from None
            finally:
                shutil.rmtree(temporary, ignore_errors=True)
    return sorted(p for p in folder.iterdir() if p.is_file())


def _members(archive: Path, pattern: str) -> Iterator[tuple[str, IO[bytes]]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            for info in zipped.infolist():
                if not info.is_dir() and fnmatch.fnmatchcase(Path(info.filename).name, pattern):
                    with zipped.open(info) as stream:
                        yield info.filename, stream
        return
    with tarfile.open(archive) as tarred:
        for member in tarred:
            if member.isreg() and fnmatch.fnmatchcase(Path(member.name).name, pattern):
                taken = tarred.extractfile(member)
                if taken is not None:
                    with taken:
                        yield member.name, taken


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
    held = {split: part for split, part in found.items() if len(part[0])}
    return {"train": (digests[:end], size[:end])} | held
