"""Which data a recipe or file, `--fasta`, `--text` and `--domain` name together."""

import os
from pathlib import Path
from typing import Any, NamedTuple, Self

from genodiff.data.recipe import list_recipe_names
from genodiff.data.text_recipe import find_domain
from genodiff.errors import UsageError, printable
from genodiff.io.input_file import STDIN, open_input

OWN = "own"
_DNA = (".fa", ".fasta", ".fna", ".ffn", ".gb", ".gbk", ".gbff", ".genbank", ".embl")
_HEADS = (b">", b"LOCUS ", b"ID  ")


class DataSource(NamedTuple):
    """What is read, and of which domain it is; None where it is not said."""

    recipe: str | None = None
    fasta: str | None = None
    text: str | None = None
    domain: str | None = None
    bed: str | None = None
    genomes: str | None = None

    @classmethod
    def of(cls, *named: str | Path | None) -> Self:
        """The same of paths."""
        return cls(*(None if one is None else str(one) for one in named))


def resolve_source(asked: DataSource, given: Any = None) -> DataSource:
    """The data that the flags mean.

    A path in a recipe's place is a FASTA, GenBank or EMBL file, or with the domain text a text. A
    recipe knows its domain. `given` are the settings of a configuration file. Raises `UsageError`
    where they contradict each other, `DataError` for a file that cannot be read.
    """
    source, fasta, text, domain = asked[:4]
    if text is not None and fasta is not None:
        raise UsageError("--text and --fasta exclude each other", fix="give one of them")
    if source is not None and _is_path(source):
        flag, value = ("--text", text) if domain == "text" else ("--fasta", fasta)
        if value is not None:
            noun = "texts" if domain == "text" else "genomes"
            fix = "give one of them, or name a recipe"
            raise UsageError(f"'{printable(source)}' and {flag} are two {noun}", fix=fix)
        if domain == "text":
            return asked._replace(recipe=OWN, fasta=None, text=source)
        if os.path.isfile(Path(source) / "config.yaml"):
            fix = f"`genodiff train --resume {printable(source)}` resumes it"
            raise UsageError(f"'{printable(source)}' is a run, not data", fix=fix)
        if _holds_sequences(source):
            if text is not None:
                fix = "give one of them"
                raise UsageError(f"'{printable(source)}' is DNA, and --text is given", fix=fix)
            return asked._replace(recipe=OWN, fasta=source, domain="dna")
    named = source or (given.get("recipe") if isinstance(given, dict) else None)
    if named is None or named == OWN:
        _refuse_absent(fasta, text)
        return asked._replace(domain=domain or ("text" if text is not None else None))
    there = find_domain(str(named))
    if domain not in (None, there):
        what = f"'{named}' is a recipe of {there}, and --domain says {domain}"
        fix = f"leave --domain out, or name a recipe of {domain} (`genodiff data list`)"
        raise UsageError(what, fix=fix)
    for flag, value, meant in (("--fasta", fasta, "dna"), ("--text", text, "text")):
        if value is not None and meant != there:
            fix = f"name a recipe of {meant}, or none"
            raise UsageError(f"{flag} does not go with '{named}', a recipe of {there}", fix=fix)
    _refuse_absent(fasta, text)
    return asked._replace(domain=there)


def make_absolute(path: str | Path | None) -> str | None:
    """The absolute path, so that a run folder can be used from anywhere; links are kept."""
    return None if path is None else os.path.abspath(path)


def locate_genomes(where: str | Path | None) -> str | None:
    """The absolute path of a list or folder of genomes, or its URL.

    Raises `DataError` where there is none.
    """
    if where is None or "://" in str(where):
        return None if where is None else str(where)
    _refuse_absent(str(where))
    return os.path.abspath(where)


def _is_path(source: str) -> bool:
    if source.endswith((".yaml", ".yml")) or source in list_recipe_names():
        return False
    return os.path.exists(source) or _is_named_as_dna(source)


def _is_named_as_dna(source: str) -> bool:
    return source.lower().removesuffix(".gz").removesuffix(".bgz").endswith(_DNA)


def _holds_sequences(source: str) -> bool:
    if not _is_named_as_dna(source) and not os.path.isfile(source):
        return False
    with open_input(source) as file:
        return _is_named_as_dna(source) or next(file.blocks(), b"").lstrip().startswith(_HEADS)


def _refuse_absent(*paths: str | None) -> None:
    """Raises `DataError` where a file or folder cannot be opened."""
    for path in paths:
        if path is not None and path != STDIN and not os.path.isdir(path):
            with open_input(path):
                pass
