"""Finished records of a request that is not done, kept in a file beside the output.

`out.fa.partial` begins with a line that names the request by a digest. Then comes, for each
finished record, a line of JSON and the record's ids. A record is a function of (seed, number), so
the same request goes on after the last whole record and gives the bytes of a run without a break.
What a killed process left half-written is cut off: each record has its sha256.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from genodiff.errors import MachineError, UsageError
from genodiff.generate.sampling import Sample
from genodiff.io.atomic import write_error
from genodiff.io.counts import format_count
from genodiff.io.target import describe_file
from genodiff.version import __version__

SUFFIX = ".partial"
_KIND = "records of a request that is not done"
_LONGEST_LINE = 4096


class SampleJournal:
    """The finished records of one request; `kept` is how many there are."""

    def __init__(self, target: str | Path, request: str) -> None:
        """Find what an earlier call of the same `request` (a digest) has kept for `target`."""
        self._target = Path(target)
        self.path, self.request = Path(f"{target}{SUFFIX}"), request
        self.kept, self._end = 0, 0
        self._file: IO[bytes] | None = None
        if _read_head(self.path).get("request") == request:
            for _, end in _read_entries(self.path):
                self.kept, self._end = self.kept + 1, end

    def check(self, *, fresh: bool, force: bool) -> None:
        """Raises `UsageError` where the file is foreign, or holds records of another request."""
        if not self.path.exists() or force or self.kept:
            return
        head = _read_head(self.path)
        if not head:
            raise UsageError(
                "is there already, and genodiff did not write it",
                file=self.path,
                fix="give another name, or --force to replace it",
            )
        records = sum(1 for _ in _read_entries(self.path))
        if records and not fresh and head["request"] != self.request and not _is_sealed(self.path):
            raise UsageError(
                f"holds {format_count(records, 'record')} of another request",
                file=self.path,
                fix="give that command again to go on, --fresh to start anew, or another name",
            )

    def start_anew(self) -> None:
        """Forget what is kept."""
        self.kept = self._end = 0

    def pass_through(
        self, make: Callable[[int], Iterable[Sample]], tick: Callable[[int], None] | None = None
    ) -> Iterator[Sample]:
        """The kept records, then those of `make(number of kept ones)`, each kept in turn.

        `tick` receives the evaluations of kept ones. Raises `MachineError` for a full disk.
        """
        if self.kept:
            for sample, _ in _read_entries(self.path):
                if sample.number >= self.kept:
                    break
                if tick is not None:
                    tick(sample.nfe)
                yield sample
        self._open()
        for sample in make(self.kept):
            self._append(sample)
            yield sample

    def seal(self, file: dict[str, Any]) -> None:
        """Note the size and sha256 of the output, which is about to get its name.

        Those of our own earlier output, which it replaces, are noted as well: it loses its sidecar.
        """
        self._open()
        before = describe_file(self._target) if self._target.exists() else None
        self._write(json.dumps({"file": file, "before": before}).encode() + b"\n")

    def remove(self) -> None:
        """Remove the file: the output is there, with its sidecar, or nothing is kept."""
        self.close()
        self.path.unlink(missing_ok=True)

    def leave(self) -> None:
        """Close the file, which stays if it holds a record."""
        self.close()
        if not self.kept and _read_head(self.path).get("request") == self.request:
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file, which stays."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> None:
        if self._file is not None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "r+b" if self.kept else "wb")  # noqa: SIM115
            self._file.truncate(self._end)
            self._file.seek(self._end)
        except OSError as fault:
            raise write_error(self.path, fault) from None
        if not self.kept:
            head = {"genodiff": __version__, "holds": _KIND, "request": self.request}
            self._write(json.dumps(head).encode() + b"\n")

    def _append(self, sample: Sample) -> None:
        ids = np.ascontiguousarray(sample.ids)
        raw = ids.tobytes()
        about = {
            "record": sample.number,
            "nfe": sample.nfe,
            "type": ids.dtype.str,
            "bytes": len(raw),
            "sha256": hashlib.sha256(raw).hexdigest(),
        }
        if sample.calls is not None:
            about |= {"calls": sample.calls, "log_z": sample.log_z}
        self._write(json.dumps(about).encode() + b"\n" + raw + b"\n")
        self.kept += 1

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as fault:
            raise write_error(self.path, fault) from None


def is_sealed_output(path: str | Path) -> bool:
    """Whether a journal beside `path` knows it as the output before or after: neither has a sidecar
    while one replaces the other.
    """
    journal = Path(f"{path}{SUFFIX}")
    try:
        if not _read_head(journal):
            return False
        seal = _read_seal(journal)
        return bool(seal) and describe_file(path) in (seal.get("file"), seal.get("before"))
    except OSError:
        return False


def _is_sealed(path: Path) -> bool:
    return bool(_read_seal(path))


def _read_head(path: Path) -> dict[str, Any]:
    """The first line of a journal of ours; empty where there is none."""
    try:
        with open(path, "rb") as file:
            head = _parse(file.readline(_LONGEST_LINE))
    except FileNotFoundError:
        return {}
    except OSError as fault:
        raise MachineError(
            f"cannot be read ({fault.strerror})", file=path, fix="check its permissions"
        ) from None
    return head if head.get("holds") == _KIND and "request" in head else {}


def _read_seal(path: Path) -> dict[str, Any]:
    """The last line of a journal whose output was about to get its name, else empty."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _LONGEST_LINE))
        last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
    found = _parse(last + b"\n")
    return found if "file" in found else {}


def _read_entries(path: Path) -> Iterator[tuple[Sample, int]]:
    """The whole records of a journal in order, each with the position of its end."""
    with open(path, "rb") as file:
        file.readline(_LONGEST_LINE)
        number = 0
        while True:
            about = _parse(file.readline(_LONGEST_LINE))
            if about.get("record") != number:
                return
            raw = file.read(about["bytes"])
            if file.read(1) != b"\n" or hashlib.sha256(raw).hexdigest() != about["sha256"]:
                return
            ids, guided = (
                np.frombuffer(raw, about["type"]),
                (about.get("calls"), about.get("log_z")),
            )
            yield Sample(number, ids, about["nfe"], *guided), file.tell()
            number += 1


def _parse(line: bytes) -> dict[str, Any]:
    if not line.endswith(b"\n"):
        return {}
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
