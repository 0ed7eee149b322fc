"""Rows of numbers of an unfinished map, kept beside the output: OUT.partial.

The first line names the request by a digest. Then comes for each row the number of its bytes, their
CRC-32, and the bytes. A row is a function of the request and of its number, so the same request
goes on after the last whole row and gives the bytes of a run without a break.
"""

import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from genodiff import __version__
from genodiff.errors import UsageError
from genodiff.io.atomic import write_error

SUFFIX = ".partial"
_KIND = "rows of a map that is not done"
_HEAD = struct.Struct("<II")


class RowJournal:
    """The rows of one request so far; `kept` is how many."""

    def __init__(self, path: str | Path, request: str) -> None:
        """Find what an earlier call of the same `request` (a digest) has kept at `path`."""
        self.path, self.request = Path(path), request
        self.kept, self._end = 0, 0
        self._file: IO[bytes] | None = None
        if read_map_request(self.path) == request:
            for _, end in self._entries():
                self.kept, self._end = self.kept + 1, end

    def check(self, *, fresh: bool, force: bool) -> None:
        """Raises `UsageError` where the file is foreign, or holds rows of another request."""
        if not self.path.exists() or force or self.kept:
            return
        found = read_map_request(self.path)
        if found is None:
            what = "is there already, and genodiff did not write it"
            fix = "give another name, or --force to replace it"
            raise UsageError(what, file=self.path, fix=fix)
        if found != self.request and not fresh:
            fix = "give that command again to go on, --fresh to start anew, or another name"
            raise UsageError("holds rows of another request", file=self.path, fix=fix)

    def start_anew(self) -> None:
        """Forget what is kept."""
        self.kept = self._end = 0

    def append(self, row: bytes) -> None:
        """Keep the next row. Raises `MachineError` for a full disk."""
        file = self._open()
        try:
            file.write(_HEAD.pack(len(row), zlib.crc32(row)) + row)
            file.flush()
        except OSError as fault:
            raise write_error(self.path, fault) from None
        self.kept += 1

    def rows(self) -> Iterator[bytes]:
        """All that is kept, in order."""
        for number, (row, _) in enumerate(self._entries()):
            if number == self.kept:
                return
            yield row

    def close(self) -> None:
        """Close the file, which stays if it holds a row."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if not self.kept and read_map_request(self.path) == self.request:
            self.path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the file: the output is there."""
        self.close()
        self.path.unlink(missing_ok=True)

    def _open(self) -> IO[bytes]:
        if self._file is not None:
            return self._file
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "r+b" if self.kept else "wb")  # noqa: SIM115
            self._file.truncate(self._end)
            self._file.seek(self._end)
            if not self.kept:
                head = {"genodiff": __version__, "holds": _KIND, "request": self.request}
                self._file.write(json.dumps(head).encode() + b"\n")
        except OSError as fault:
            raise write_error(self.path, fault) from None
        return self._file

    def _entries(self) -> Iterator[tuple[bytes, int]]:
        """Each whole row, and where it ends."""
        if not self.path.exists():
            return
        with open(self.path, "rb") as file:
            end = len(file.readline())
            while len(head := file.read(_HEAD.size)) == _HEAD.size:
                size, check = _HEAD.unpack(head)
                row = file.read(size)
                if len(row) < size or zlib.crc32(row) != check:
                    return
                end += len(head) + size
                yield row, end


def read_map_request(path: str | Path) -> str | None:
    """The request whose rows a journal of ours holds; None where there is none."""
    try:
        with open(path, "rb") as file:
            line = file.readline(4096)
        head: Any = json.loads(line) if line.endswith(b"\n") else None
    except (OSError, ValueError):
        return None
    if not isinstance(head, dict) or head.get("holds") != _KIND:
        return None
    return str(head.get("request"))
