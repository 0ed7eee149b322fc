"""Scores of an unfinished request, kept beside the output: OUT.partial.

The first line names the request by a digest. Then comes a line of JSON for each record, in order.
A score is a function of the model, the genome and the variant, so the same request goes on after
the last whole line and gives the bytes of a run without a break.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from genodiff import __version__
from genodiff.errors import UsageError
from genodiff.io.atomic import write_error
from genodiff.scoring.scored_variants import AltScore

SUFFIX = ".partial"
_KIND = "scores of variants of a request that is not done"
_EVERY = 1.0  # seconds between writes; what is not written yet is lost with a killed process


class VariantJournal:
    """The scores of one request so far; `kept` is of how many records."""

    def __init__(self, path: str | Path, request: str) -> None:
        """Find what an earlier call of the same `request` (a digest) has kept at `path`."""
        self.path, self.request = Path(path), request
        self.kept, self._end = 0, 0
        self._file: IO[bytes] | None = None
        self._written = 0.0
        if read_request(self.path) == request:
            for _, end in self._entries():
                self.kept, self._end = self.kept + 1, end

    def check(self, *, fresh: bool, force: bool) -> None:
        """Raises `UsageError` where the file is foreign, or holds scores of another request."""
        if not self.path.exists() or force or self.kept:
            return
        found = read_request(self.path)
        if found is None:
            what = "is there already, and genodiff did not write it"
            raise UsageError(
                what, file=self.path, fix="give another name, or --force to replace it"
            )
        if found != self.request and not fresh:
            fix = "give that command again to go on, --fresh to start anew, or another name"
            raise UsageError("holds scores of another request", file=self.path, fix=fix)

    def start_anew(self) -> None:
        """Forget what is kept."""
        self.kept = self._end = 0

    def append(self, scores: tuple[AltScore, ...]) -> None:
        """Keep the scores of the next record. Raises `MachineError` for a full disk."""
        file = self._open()
        try:
            file.write(json.dumps(scores).encode() + b"\n")
            if time.monotonic() - self._written > _EVERY:
                file.flush()
                self._written = time.monotonic()
        except OSError as fault:
            raise write_error(self.path, fault) from None
        self.kept += 1

    def scores(self) -> Iterator[tuple[AltScore, ...]]:
        """All that is kept, in order."""
        if self._file is not None:
            self._file.flush()
        for number, (scores, _) in enumerate(self._entries()):
            if number == self.kept:
                return
            yield scores

    def close(self) -> None:
        """Close the file, which stays if it holds a score."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if not self.kept and read_request(self.path) == self.request:
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

    def _entries(self) -> Iterator[tuple[tuple[AltScore, ...], int]]:
        if not self.path.exists():
            return
        with open(self.path, "rb") as file:
            end = len(file.readline())
            for line in file:
                found = _parse(line)
                if not isinstance(found, list):
                    return
                end += len(line)
                yield tuple(AltScore(*one)._replace(flags=tuple(one[-1])) for one in found), end


def read_request(path: str | Path) -> str | None:
    """The request whose scores a journal of ours holds; None where there is none."""
    try:
        with open(path, "rb") as file:
            head = _parse(file.readline(4096))
    except OSError:
        return None
    if not isinstance(head, dict) or head.get("holds") != _KIND:
        return None
    return str(head.get("request"))


def _parse(line: bytes) -> Any:
    if not line.endswith(b"\n"):
        return None
    try:
        return json.loads(line)
    except ValueError:
        return None
