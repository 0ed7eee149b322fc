"""Data before training: `genodiff.list_recipes`, `fetch_data`, `build_store`, `train_tokenizer`,
`check_documents`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from genodiff.api.sources import OWN, DataSource, resolve_source
from genodiff.data.recipe import SPLITS, list_recipe_names, load_recipe, make_user_recipe
from genodiff.data.text_recipe import (
    list_text_recipe_names,
    load_any_recipe,
    load_text_recipe,
    make_text_recipe,
)
from genodiff.domain import DNA, TEXT
from genodiff.errors import DataError, UsageError
from genodiff.io import atomic
from genodiff.io.input_file import STDIN
from genodiff.io.target import check_target

if TYPE_CHECKING:
    from genodiff.data.store import Store
    from genodiff.data.windows import Windows

_FEWEST, _MOST = 260, 1 << 20  # tokens of a vocabulary: the bytes, three special ones, one more
_TABLES = (".csv", ".tsv", ".parquet")


@dataclass(frozen=True)
class BuiltStore:
    """A store that training can read, whole and verified."""

    path: Path
    row: dict[str, Any]
    """As `genodiff data build --json` prints: identity, notes, and what each split holds."""
    summaries: dict[str, str]
    """A line about each split, for a person to read."""


@dataclass(frozen=True)
class TrainedTokenizer:
    """A tokenizer on disk; its folder can be given as `tokenizer`."""

    path: Path
    n_tokens: int


@dataclass(frozen=True)
class CheckedDocuments:
    """What stands in the documents of a text."""

    rows: list[dict[str, Any]]
    """Of each split: name, documents, length (bytes), repeated, in_train."""
    n_files: int
    notes: list[str]


def list_recipes(domain: Literal["dna", "text"] | None = None) -> list[dict[str, Any]]:
    """The recipes by name, of all domains or one: name, domain, description, present, sources.

    `present` says that nothing has to be fetched: the files are here, or the data are generated.
    `sources` (url, filename, sha256, licence) is empty where they are, or where the files must be
    your own. Nothing is fetched.
    """
    from genodiff.data.fetch import is_present

    rows = []
    for name in list_recipe_names():
        recipe = load_any_recipe(name)
        if domain not in (None, recipe.domain):
            continue
        here = bool(recipe.sources) and all(is_present(source) for source in recipe.sources)
        rows.append(
            {
                "name": name,
                "domain": recipe.domain,
                "description": recipe.description,
                "present": recipe.generator is not None or here,
                "sources": [source.model_dump() for source in recipe.sources],
            }
        )
    return rows


EXAMPLE = "example"


def fetch_data(
    recipe: str | Path,
    *,
    out: str | Path | None = None,
    offline: bool = False,
    force: bool = False,
) -> list[Path]:
    """The files of a recipe on this machine, fetched where needed and checked by their hash.

    `recipe` is a name or a YAML file. Data that are generated have no files. "example" is a made-up
    genome of 100 kb with two related genomes, genes and variants, written into the folder `out`
    (default: example); `force` overwrites other files there. Raises `UsageError` for an unknown
    recipe, `DataError` where a file cannot be had, or may not be with `offline`.
    """
    if recipe == EXAMPLE:
        from genodiff.data.example import write_example

        return write_example(Path(EXAMPLE if out is None else out), force=force)
    if out is not None:
        raise UsageError("--out is for the example", fix="leave it out: files go into the cache")
    found = load_any_recipe(recipe)
    if found.generator:
        return []
    from genodiff.data.fetch import fetch

    return fetch(found, offline=offline)


def build_store(
    recipe: str | Path,
    *,
    fasta: str | Path | None = None,
    text: str | Path | None = None,
    tokenizer: str | Path = "bytes",
    packing: Literal["auto", "packed", "padded"] = "auto",
    domain: Literal["dna", "text"] | None = None,
    bed: str | Path | None = None,
    seq_len: int = 1024,
    offline: bool = False,
    force: bool = False,
) -> BuiltStore:
    """The store that training reads, built where it is not there yet, verified and counted.

    `recipe` is a name, a YAML file, or your own FASTA, GenBank or EMBL file; with the domain text a
    file or folder. `tokenizer` and `packing` are for text, `bed` (train, valid or test in column 4)
    for DNA. The windows of each split have `seq_len` tokens. `force` builds again. Raises
    `UsageError`, and `DataError` for data that cannot train.
    """
    named, genome, words, meant = resolve_source(DataSource.of(recipe, fasta, text, domain))[:4]
    store: Store
    splits: dict[str, Any] = {}
    summaries: dict[str, str] = {}
    if meant == TEXT.name:
        texts = make_text_recipe(str(words)) if named == OWN else load_text_recipe(recipe)
        from genodiff.data.tokenizer_sources import open_tokenizer

        opened = open_tokenizer(str(tokenizer), offline=offline)
        from genodiff.data.text_store import build_text_store
        from genodiff.data.text_windows import open_text_windows

        documents = build_text_store(texts, words, opened, offline=offline, force=force)
        store = documents

        def cut(split: str) -> Windows:
            return open_text_windows(documents, texts, split, seq_len, packing=packing)
    else:
        if named == OWN and genome is not None:
            chosen = make_user_recipe(genome, bed)
        else:
            chosen = load_recipe(recipe, bed=bed)
        from genodiff.data.dna_store import build_dna_store
        from genodiff.data.dna_windows import DnaWindows

        contigs = build_dna_store(chosen, genome, offline=offline, force=force)
        store = contigs

        def cut(split: str) -> Windows:
            return DnaWindows(contigs, chosen, split, seq_len)

    store.verify()
    unit = TEXT.units if meant == TEXT.name else DNA.units
    for split in SPLITS:
        try:
            windows = cut(split)
        except DataError as fault:
            if split == "train":
                raise
            splits[split], summaries[split] = {"windows": 0, "why": str(fault)}, str(fault)
            continue
        counted = {"windows": len(windows), unit: windows.intervals.n_bases}
        splits[split] = counted | windows.dropped
        summaries[split] = windows.summary()
    row = {
        "store": str(store.path),
        **store.identity(),
        "notes": list(store.splits.notes),
        "splits": splits,
    }
    if meant == TEXT.name:
        row["duplicates_of_train"] = documents.duplicates()
    return BuiltStore(store.path, row, summaries)


def train_tokenizer(
    texts: str | Path | Sequence[str | Path],
    *,
    out: str | Path,
    vocab_size: int = 8192,
    recipe: str | Path | None = None,
    force: bool = False,
    offline: bool = False,
) -> TrainedTokenizer:
    """Write `out`/tokenizer.json, a byte-level BPE of `texts`; its path and number of tokens.

    `texts` are files and folders. A text `recipe` says how they are read, and only its train files
    are learned from. `vocab_size` counts the 256 bytes and three special tokens. Raises
    `UsageError`, `DataError` for texts that cannot be read, `MachineError` without the package
    tokenizers.
    """
    names = [str(name) for name in ([texts] if isinstance(texts, str | Path) else texts)]
    path = Path(out) / "tokenizer.json"
    check_target(path, force=force, inputs=names)
    if not _FEWEST <= vocab_size <= _MOST:
        raise UsageError(
            f"--vocab-size {vocab_size} is not between {_FEWEST} and {_MOST}",
            fix="give 8192, for example",
        )
    if not names:
        raise UsageError("no text to learn from", fix="give a file or a folder")
    stated = None if recipe is None else load_text_recipe(recipe)
    from genodiff.data.file_tokenizer import train_bpe
    from genodiff.data.text_build import deal_texts, list_sources

    def pieces() -> Iterator[str]:
        for name in names:
            chosen = make_text_recipe(name) if stated is None else stated
            files, _ = list_sources(chosen, name, offline=offline)
            kept = [item for item in files if item[0] in ("train", "all")] or files
            for piece, part, _, _ in deal_texts(chosen, kept, cut_anywhere=False):
                if part in ("train", "all") or kept is files:
                    yield piece

    content = train_bpe(pieces(), vocab_size)
    atomic.write_bytes(path, content)
    return TrainedTokenizer(path, len(json.loads(content)["model"]["vocab"]))


def check_documents(
    source: str | Path, *, text: str | Path | None = None, seq_len: int | None = None
) -> CheckedDocuments:
    """How many documents each split of a text holds, and how many are duplicates, after all of it
    was read.

    `source` is a text recipe, or a file, folder or table of your own; `text` are the files of a
    recipe, which are not fetched. Raises `UsageError` for an unknown recipe, `DataError` for files
    that hold no text, and where no split has `seq_len` bytes.
    """
    own = Path(source).exists() if text is None else Path(text) == Path(source)
    recipe = make_text_recipe(source) if own else load_text_recipe(source)
    given = source if own else text
    from genodiff.data.document_counts import count_documents
    from genodiff.data.text_build import list_sources

    files, notes = list_sources(recipe, given, offline=True)
    rows = list(count_documents(recipe, files))
    longest = max((row["length"] for row in rows), default=0)
    if not longest:
        raise DataError(
            "is empty or holds only white space: no text",
            file=files[0][1],
            fix="give a file with text",
        )
    if seq_len is not None and longest < seq_len:
        what = f"every split is shorter than --seq-len {seq_len}: the longest has {longest} bytes"
        raise DataError(what, file=files[0][1], fix="give more text or a smaller --seq-len")
    return CheckedDocuments(rows, len(files), notes)


def holds_documents(source: str, text: str | None = None) -> bool:
    """Whether `source` is a folder or table of texts, or the name of a text recipe."""
    if source == STDIN:
        return False
    if text is not None or os.path.isdir(source):
        return True
    if os.path.lexists(source):
        return source.lower().removesuffix(".gz").endswith(_TABLES)
    return source in list_text_recipe_names()
