"""The formats of files of maps, by the ends of their names."""

from pathlib import Path

from genodiff.errors import UsageError

PICTURES = (".svg", ".png", ".pdf")
"""Of one region each."""
DRAWN = (*PICTURES, ".html")
FORMATS = (".tsv", ".parquet", ".npz", *DRAWN)


def find_map_format(path: str | Path) -> str:
    """The format that a file's name asks for; "-" is a table. Raises `UsageError`."""
    if str(path) == "-":
        return ".tsv"
    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        what = f"'{Path(path).name}' ends in none of {', '.join(FORMATS)}"
        raise UsageError(what, fix="name the output after its format")
    return ending
