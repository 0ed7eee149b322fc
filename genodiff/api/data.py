"""Data before training: `genodiff.list_recipes`, `fetch_data`, `build_store`,
`check_documents`.
"""

import os
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

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
from genodiff.io.input_file import STDIN
from genodiff.jobs.options import OUT, Force, Offline
from genodiff.jobs.request import Option, Request
from genodiff.jobs.verbs import verb

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
class CheckedDocuments:
    """What stands in the documents of a text."""

    rows: list[dict[str, Any]]
    """Of each split: name, documents, length (bytes), repeated, in_train."""
    n_files: int
    notes: list[str]


Domain = Literal["dna", "text"]
EXAMPLE = "example"


@verb(
    "data list",
    function="list_recipes",
    help="List the recipes, and whether their files are on this machine.",
)
@dataclass(frozen=True, kw_only=True)
class RecipeListRequest(Request[list[dict[str, Any]]]):
    """List the recipes of all domains or one: name, domain, description, present, sources.

    `present` means that no download is needed: the files are here, or the data are generated.
    `sources` (url, filename, sha256, licence) is empty in that case, and where you must provide the
    files. Nothing is downloaded.
    """

    json_help: ClassVar[str] = "One JSON object per recipe and line."

    domain: Annotated[Domain | None, Option("Only recipes of this domain.")] = field(
        default=None, kw_only=False
    )

    def answer(self, *given: Any) -> list[dict[str, Any]]:
        from genodiff.data.fetch import is_present

        rows = []
        for name in list_recipe_names():
            recipe = load_any_recipe(name)
            if self.domain not in (None, recipe.domain):
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

    def list_rows(self, answer: Any) -> list[Any]:
        return list(answer)

    def show(self, answer: Any) -> None:
        for row in answer:
            where = "here" if row["present"] else "to fetch"
            if not row["sources"]:
                where = "built in" if row["present"] else "yours"
            print(f"{row['name']:<15} {row['domain']:<4} {where:<9} {row['description']}")


@verb(
    "data get",
    function="fetch_data",
    help="""
Download a recipe's files into the cache, verify their hashes, and print their paths.

`example` is a simulated genome with two related genomes, genes and variants; no download.
""",
)
@dataclass(frozen=True, kw_only=True)
class FetchRequest(Request[list[Path]]):
    """Download the files of a recipe if necessary, and verify their hashes.

    `recipe` is a name or a YAML file. Generated data have no files. "example" is a simulated genome
    of 100 kb with two related genomes, genes and variants, written to the folder `out` (default:
    example); `force` overwrites other files there. Raises `UsageError` for an unknown recipe,
    `DataError` if a file is unavailable, or not cached with `offline`.
    """

    json_help: ClassVar[str] = ""

    recipe: Annotated[
        str | Path, Option("A recipe's name, a YAML file, or example.", ("RECIPE",), is_word=True)
    ] = field(kw_only=False)
    out: Annotated[Path | str | None, Option("Folder for the example [example].", OUT)] = None
    offline: Offline = False
    force: Force = False

    def answer(self, *given: Any) -> list[Path]:
        if self.recipe == EXAMPLE:
            from genodiff.data.example import write_example

            return write_example(Path(EXAMPLE if self.out is None else self.out), force=self.force)
        if self.out is not None:
            fix = "leave it out: files go into the cache"
            raise UsageError("--out is for the example", fix=fix)
        found = load_any_recipe(self.recipe)
        if found.generator:
            return []
        from genodiff.data.fetch import fetch

        return fetch(found, offline=self.offline)

    def show(self, answer: Any) -> None:
        for path in answer:
            print(path)


@verb(
    "data build",
    function="build_store",
    help="Build the store that training reads, verify it, and count the windows of each split.",
)
@dataclass(frozen=True, kw_only=True)
class BuildRequest(Request[BuiltStore]):
    """Build the store that training reads, if necessary; verify and count it.

    `recipe` is a name, a YAML file, or your own FASTA, GenBank or EMBL file; with the domain text a
    file or folder. `tokenizer` and `packing` are for text, `bed` (train, valid or test in column 4)
    for DNA. The windows of each split have `seq_len` tokens. `force` builds again. Raises
    `UsageError`, and `DataError` for data unsuitable for training.
    """

    recipe: Annotated[
        str | Path,
        Option(
            "Name of a recipe, or a YAML file; with --domain text also your file.",
            ("RECIPE",),
            is_word=True,
        ),
    ] = field(kw_only=False)
    fasta: Annotated[
        str | Path | None, Option("Your FASTA file instead of the recipe's source.")
    ] = None
    text: Annotated[
        str | Path | None, Option("Your file or folder of text instead of the recipe's source.")
    ] = None
    tokenizer: Annotated[
        str | Path,
        Option("For text: bytes, text8, gpt2, bert-base-uncased, or a tokenizer's folder."),
    ] = "bytes"
    packing: Annotated[
        Literal["auto", "packed", "padded"], Option("For text: how windows are cut.")
    ] = "auto"
    domain: Annotated[Domain | None, Option("Expected domain.")] = None
    bed: Annotated[
        str | Path | None,
        Option(
            "Your splits: a BED file with train, valid or test in column 4; the strand is not used."
        ),
    ] = None
    seq_len: Annotated[int, Option("Window length to count windows by.")] = 1024
    offline: Offline = False
    force: Annotated[bool, Option("Build again even if it exists.")] = False

    def answer(self, *given: Any) -> BuiltStore:
        source = DataSource.of(self.recipe, self.fasta, self.text, self.domain)
        named, genome, words, meant = resolve_source(source)[:4]
        splits: dict[str, Any] = {}
        summaries: dict[str, str] = {}
        if meant == TEXT.name:
            texts = make_text_recipe(str(words)) if named == OWN else load_text_recipe(self.recipe)
            from genodiff.data.tokenizer import open_tokenizer

            opened = open_tokenizer(str(self.tokenizer), offline=self.offline)
            from genodiff.data.text_store import build_text_store
            from genodiff.data.text_windows import open_text_windows

            store: Any = build_text_store(
                texts, words, opened, offline=self.offline, force=self.force
            )
            open_windows: Any = partial(open_text_windows, store, texts, packing=self.packing)
        else:
            if named == OWN and genome is not None:
                chosen = make_user_recipe(genome, self.bed)
            else:
                chosen = load_recipe(self.recipe, bed=self.bed)
            from genodiff.data.dna_store import build_dna_store
            from genodiff.data.dna_windows import DnaWindows

            store = build_dna_store(chosen, genome, offline=self.offline, force=self.force)
            open_windows = partial(DnaWindows, store, chosen)
        store.verify()
        unit = TEXT.units if meant == TEXT.name else DNA.units
        for split in SPLITS:
            try:
                windows = open_windows(split, self.seq_len)
            except DataError as fault:
                if split == "train":
                    raise
                splits[split], summaries[split] = {"windows": 0, "why": str(fault)}, str(fault)
                continue
            counted = {"windows": len(windows), unit: windows.intervals.n_bases}
            splits[split] = counted | windows.dropped
            summaries[split] = windows.summary()
        row: dict[str, Any] = {"store": str(store.path)} | store.identity()
        row |= {"notes": list(store.splits.notes), "splits": splits}
        if meant == TEXT.name:
            row["duplicates_of_train"] = store.duplicates()
        return BuiltStore(store.path, row, summaries)

    def list_rows(self, answer: Any) -> list[Any]:
        return [answer.row]

    def show(self, answer: Any) -> None:
        for split, words in answer.summaries.items():
            print(f"{split:<6} {words}")
        print(f"store  {answer.path}")


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
    from genodiff.data.text_build import count_documents, list_sources

    files, notes = list_sources(recipe, given, offline=True)
    rows = list(count_documents(recipe, files))
    longest = max((row["length"] for row in rows), default=0)
    if not longest:
        fix = "give a file with text"
        raise DataError("is empty or holds only white space: no text", file=files[0][1], fix=fix)
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
