"""The formats of files of embeddings, by the ends of their names."""

from pathlib import Path

from genodiff.errors import UsageError

FORMATS = (".npz", ".parquet", ".csv", ".tsv")
SEPARATORS = {".csv": ",", ".tsv": "\t"}
"""Of the formats that are tables of text."""


def find_embedding_format(path: Path) -> str:
    """The format that a file's name asks for. Raises `UsageError`."""
    if path.suffix.lower() not in FORMATS:
        what = f"'{path.name}' ends in none of {', '.join(FORMATS)}"
        raise UsageError(what, fix="name the output after its format")
    return path.suffix.lower()
