"""What a sidecar or a page says of files: digests, times, and no private folder names."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from genodiff.errors import DataError
from genodiff.io.file_kinds import find_readable

if TYPE_CHECKING:
    from numpy.typing import NDArray


def canonical_json(values: Any, *, compact: bool = False) -> str:
    """ASCII JSON with sorted keys; `compact` leaves out the blanks between its parts."""
    return json.dumps(values, sort_keys=True, separators=(",", ":") if compact else None)


def sha256_json(values: Any, *, compact: bool = False) -> str:
    """sha256 (hex) of the canonical JSON of `values`."""
    return hashlib.sha256(canonical_json(values, compact=compact).encode()).hexdigest()


def sha256_array(values: NDArray[Any]) -> str:
    """sha256 (hex) of an array's bytes, row by row."""
    return hashlib.sha256(values.tobytes()).hexdigest()


def sha256_file(path: str | Path) -> str:
    """sha256 (hex) of a file's bytes. Raises `DataError` where it cannot be read."""
    try:
        with open(find_readable(path), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as fault:
        fix = "check its permissions"
        raise DataError(f"cannot be read ({fault.strerror})", file=path, fix=fix) from None


def stamp_time(precision: Literal["seconds", "milliseconds"] = "seconds") -> str:
    """The time now in UTC, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec=precision)


_FROM = r"(?:~[\w.-]*|\.\.)?/(?!/)"
_QUOTED = re.compile(rf"(['\"`]){_FROM}([^'\"`\n]*)\1")
_BARE = re.compile(rf"(?<![^\s'\"`=(\[,:]){_FROM}((?:[^\s'\"`,;()\[\]<>|]+/)[^\s'\"`,;()\[\]<>|]*)")
_HOME = re.compile(r"(?<![^\s'\"`=(\[,:])(?:~[\w.-]*|\.\.)/([^\s'\"`,;()\[\]<>|/]+)")


def hide_folders(text: str) -> str:
    """The text with such paths cut down to their last names.

    >>> hide_folders("genodiff eval /home/me/runs/yeast --out='../a b/x.json'")
    "genodiff eval yeast --out='x.json'"
    """
    text = _QUOTED.sub(lambda hit: f"{hit[1]}{_take_last(hit[2])}{hit[1]}", text)
    text = _BARE.sub(lambda hit: _take_last(hit[1]), text)
    return _HOME.sub(lambda hit: hit[1], text)


def hide_all_folders(value: Any) -> Any:
    """The same of all texts in lists and objects; keys stay."""
    if isinstance(value, str):
        return hide_folders(value)
    if isinstance(value, dict):
        return {key: hide_all_folders(inner) for key, inner in value.items()}
    return [hide_all_folders(inner) for inner in value] if isinstance(value, list) else value


def _take_last(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
