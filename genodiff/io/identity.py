"""Digests and time stamps: by what values and files are known again.

A digest names things on disk: runs, stores, results. It must never change for the same values, so
the two ways to write JSON, with blanks and without, both stay.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from genodiff.errors import DataError
from genodiff.io.file_names import find_readable

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
        raise DataError(
            f"cannot be read ({fault.strerror})", file=path, fix="check its permissions"
        ) from None


def stamp_time(precision: Literal["seconds", "milliseconds"] = "seconds") -> str:
    """The time now in UTC, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec=precision)
