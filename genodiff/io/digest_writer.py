"""A file that is written, with its size and sha256 known at the end."""

import hashlib
from typing import IO, Any


class DigestWriter:
    """Passes on what is written to a binary file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._bytes, self._hash = file, 0, hashlib.sha256()

    def write(self, data: bytes) -> int:
        """Write `data`; returns its size."""
        self._file.write(data)
        self._hash.update(data)
        self._bytes += len(data)
        return len(data)

    def flush(self) -> None:
        """Hand what is buffered to the system."""
        self._file.flush()

    def describe(self) -> dict[str, Any]:
        """What a sidecar says of the file: its size and sha256."""
        return {"bytes": self._bytes, "sha256": self._hash.hexdigest()}
