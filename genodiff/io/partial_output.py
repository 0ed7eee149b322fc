"""What is done of an unfinished output, kept beside it: OUT.partial.

The first line names the request by a digest. The entries come after it, each in a form of its kind.
An entry is a function of the request and of its number. So the same request goes on after the last
whole entry and gives the bytes of a run without a break. What is done of an entry that takes long
may be kept, too, in parts.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, ClassVar, Generic, TypeVar

from genodiff.errors import UsageError
from genodiff.io.atomic import write_error
from genodiff.version import __version__

SUFFIX = ".partial"
Entry = TypeVar("Entry")


class PartialOutput(ABC, Generic[Entry]):
    """The entries of one request so far; `kept` is how many, and `parts` how many parts of others.

    A subclass says what a file `holds`, what an entry is called, and how entries are read.
    """

    holds: ClassVar[str]
    noun: ClassVar[str]

    def __init__(self, path: str | Path, request: str) -> None:
        """Find what an earlier call of the same `request` (a digest) has kept at `path`."""
        self.path, self.request = Path(path), request
        self.kept, self.parts, self._end = 0, 0, 0
        self._file: IO[bytes] | None = None
        if self.read_request(self.path) == request:
            for _, end in self._entries():
                self.kept, self._end = self.kept + 1, end

    @classmethod
    def read_request(cls, path: str | Path) -> str | None:
        """The request whose entries a file of this kind holds; None where it is no such file."""
        try:
            with open(path, "rb") as file:
                head = parse_line(file.readline(4096))
        except OSError:
            return None
        if not isinstance(head, dict) or head.get("holds") != cls.holds:
            return None
        return str(head.get("request"))

    def check(self, *, fresh: bool, force: bool) -> None:
        """Raises `UsageError` where the file is foreign, or holds entries of another request."""
        if not self.path.exists() or force or self.has_begun:
            return
        found = self.read_request(self.path)
        if found is None:
            what = "is there already, and genodiff did not write it"
            fix = "give another name, or --force to replace it"
            raise UsageError(what, file=self.path, fix=fix)
        if found != self.request and not fresh:
            fix = "give that command again to go on, --fresh to start anew, or another name"
            raise UsageError(f"holds {self.noun} of another request", file=self.path, fix=fix)

    @property
    def has_begun(self) -> bool:
        """Whether anything is kept."""
        return self.kept + self.parts > 0

    def start_anew(self) -> None:
        """Forget what is kept."""
        self.kept = self.parts = self._end = 0

    def close(self) -> None:
        """Close the file, which stays if it holds an entry or a part."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if not self.has_begun and self.read_request(self.path) == self.request:
            self.path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the file: the output is there."""
        self.close()
        self.path.unlink(missing_ok=True)

    @abstractmethod
    def _read_entries(self, file: IO[bytes]) -> Iterator[tuple[Entry, int]]:
        """Each whole entry after the first line, and how many bytes it has."""

    def _append(self, data: bytes, *, flush: bool) -> None:
        """Keep these bytes. Raises `MachineError` for a full disk."""
        file = self._open()
        try:
            file.write(data)
            if flush:
                file.flush()
        except OSError as fault:
            raise write_error(self.path, fault) from None

    def _read_kept(self) -> Iterator[Entry]:
        """All that is kept, in order."""
        if self._file is not None:
            self._file.flush()
        for number, (entry, _) in enumerate(self._entries()):
            if number == self.kept:
                return
            yield entry

    def _open(self) -> IO[bytes]:
        if self._file is not None:
            return self._file
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "r+b" if self.has_begun else "wb")  # noqa: SIM115
            self._file.truncate(self._end)
            self._file.seek(self._end)
            if not self.has_begun:
                head = {"genodiff": __version__, "holds": self.holds, "request": self.request}
                self._file.write(json.dumps(head).encode() + b"\n")
        except OSError as fault:
            raise write_error(self.path, fault) from None
        return self._file

    def _entries(self) -> Iterator[tuple[Entry, int]]:
        """Each whole entry, and where it ends."""
        if not self.path.exists():
            return
        with open(self.path, "rb") as file:
            end = len(file.readline())
            for entry, size in self._read_entries(file):
                end += size
                yield entry, end


def parse_line(line: bytes) -> Any:
    """The JSON of a whole line; None for a cut or damaged one."""
    if not line.endswith(b"\n"):
        return None
    try:
        return json.loads(line)
    except ValueError:
        return None
