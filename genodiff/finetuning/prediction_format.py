"""The formats of predictions by the name of an output: this module imports nothing heavy."""

from pathlib import Path
from typing import Literal

from genodiff.errors import UsageError

Format = Literal["csv", "tsv", "jsonl", "parquet"]
FORMATS: tuple[Format, ...] = ("csv", "tsv", "jsonl", "parquet")
STDOUT = "-"
LABELS = "labels at each base"
"""What a shard of a model that labels bases holds."""


def find_format(path: str | Path, wanted: Format | None = None) -> Format:
    """The format of an output: `wanted`, or what its name says; CSV on stdout.

    Raises `UsageError`.
    """
    if str(path) == STDOUT:
        if wanted == "parquet":
            raise UsageError("parquet cannot be streamed to stdout", fix="give --out FILE.parquet")
        return wanted or "csv"
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        known = ", ".join(f".{name}" for name in FORMATS)
        fix = "name the output after its format"
        raise UsageError(f"'{Path(path).name}' ends in none of {known}", fix=fix)
    return ending
