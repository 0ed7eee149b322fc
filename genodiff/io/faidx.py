"""Random access into a user's FASTA, through pyfaidx and an index of ours that is checked against
the file.

A `.fai` beside the file is never read and never written: libraries take it on trust, and a stale
one yields wrong DNA without a word. Our index stands in our cache, is written atomically, and is
used only while the file is provably the one it was built from: same size, times and inode, same
bytes at sampled places, and the same sha256 whenever the file is so young that its times prove
nothing. Building it reads the whole file with the judgement of `read_fasta`.

What cannot be read at random as it stands (gzip, bgzip, lines of uneven length) gets a plain copy
in the cache.
"""

import hashlib
import json
import logging
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

import pyfaidx
from filelock import FileLock, Timeout

from genodiff.errors import DataError, MachineError
from genodiff.io import atomic
from genodiff.io.cache import cache_dir
from genodiff.io.fasta import Header, Piece, scan
from genodiff.io.identity import sha256_json
from genodiff.io.regions import contig_hint
from genodiff.io.source import STDIN, open_source

log = logging.getLogger("genodiff")

FORMAT = 1
# ns: a file changed within this time of being read may change again under the same times
_YOUNG = 2_000_000_000
_SAMPLES, _SAMPLE = 64, 4096
_PATIENCE = 600.0  # s to wait for another process that builds the same index; then build it too
_ZIPPED = (".gz", ".bgz", ".bz2", ".zip")  # pyfaidx goes by the name


class Place(NamedTuple):
    """Where a contig's letters stand: `offset` of the first byte, letters and bytes per line, as in
    a .fai.
    """

    length: int
    offset: int
    letters: int
    bytes: int


class Genome:
    """Contigs of a FASTA file by name and range. Safe in threads, after a fork, and pickled into
    another process.
    """

    def __init__(self, path: str | Path) -> None:
        """Open `path`; index it first if need be. Raises `DataError` where it is no exact FASTA."""
        self.path = str(path)
        self.sha256 = ""
        self.contigs: dict[str, int] = {}
        self._open()

    def _open(self) -> None:
        self._kept = ExitStack()
        self._pid = os.getpid()
        try:
            self._faidx, places, self.sha256, self._stamp = _opened(self.path, self._kept)
        except BaseException:
            self._kept.close()
            raise
        self.contigs = {name: place.length for name, place in places.items()}

    def fetch(self, contig: str, start: int, end: int) -> bytes:
        """The letters of contig[start:end] (0-based, half-open), case kept: exactly `end - start`
        of them.

        Raises `DataError` for an unknown contig, a range outside it, or a file that has changed
        since it was opened.
        """
        if (
            self._pid != os.getpid()
        ):  # a fork shares the file's position with its parent: each would read the other's
            self._open()
        length = self.contigs.get(contig)
        if length is None:
            raise DataError(
                f"no contig '{contig}'", file=self.path, fix=contig_hint(contig, self.contigs)
            )
        if not 0 <= start <= end <= length:
            what = f"{start}-{end} (0-based) is not within {contig} (length {length})"
            raise DataError(what, file=self.path, fix="give a range within the contig")
        if start == end:
            return b""
        letters: str = self._faidx.fetch(contig, start + 1, end)
        if (
            len(letters) != end - start
            or _stamp(os.fstat(self._faidx.file.fileno()))[:2] != self._stamp[:2]
        ):
            raise DataError(
                "changed while in use",
                file=self.path,
                fix="bring the old file back, or start again",
            )
        return letters.encode("latin-1")

    def close(self) -> None:
        """Close the file. `fetch` does not work afterwards."""
        self._kept.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, str]:
        return {"path": self.path, "sha256": self.sha256}

    def __setstate__(self, state: dict[str, str]) -> None:
        self.__init__(state["path"])  # type: ignore[misc]
        if self.sha256 != state["sha256"]:
            raise DataError(
                "changed while in use",
                file=self.path,
                fix="bring the old file back, or start again",
            )


class _Faidx(pyfaidx.Faidx):
    """pyfaidx over places that we know, in place of an index file that it would have to trust."""

    def __init__(self, path: str, places: dict[str, Place]) -> None:
        self._places = places
        nowhere = os.path.join(os.devnull, "none")
        super().__init__(
            path,
            indexname=nowhere,
            as_raw=True,
            strict_bounds=True,
            rebuild=False,
            build_index=False,
        )

    def read_fai(self) -> None:
        for name, place in self._places.items():
            self.index[name] = pyfaidx.IndexRecord(*place, place.offset, None)


def _opened(path: str, kept: ExitStack) -> tuple[_Faidx, dict[str, Place], str, tuple[int, ...]]:
    """pyfaidx on the file or its copy, the places, the file's sha256, and the opened file's stamp."""
    if path == STDIN:
        raise DataError("stdin cannot be read at random", fix="give a file")
    home = (
        cache_dir()
        / "genomes"
        / hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:32]
    )
    with _locked(home) as locked:
        index = _read_index(home, path)
        if index is None:
            index = _build(path, home, locked, kept)
        opened = str(index["copy"] or path)
        places = {name: Place(*numbers) for name, *numbers in index["places"]}
        try:
            faidx = _Faidx(opened, places)
        except (OSError, pyfaidx.FastaNotFoundError):
            raise DataError(
                "disappeared while it was opened", file=path, fix="bring the file back"
            ) from None
    kept.callback(faidx.close)
    stamp = _stamp(os.fstat(faidx.file.fileno()))
    if stamp != tuple(index["copy_stamp"] or index["stamp"]):
        raise DataError(
            "changed while it was opened",
            file=path,
            fix="wait until it is complete, then start again",
        )
    return faidx, places, index["sha256"], stamp


@contextmanager
def _locked(home: Path) -> Iterator[bool]:
    """Whether we alone look after `home` now. Without a lock all still works, since every write is
    atomic.
    """
    lock = FileLock(f"{home}.lock", poll_interval=0.01)
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=1)
        except Timeout:
            log.info("waiting for another process that indexes the same FASTA")
            lock.acquire(timeout=_PATIENCE)
    except (OSError, NotImplementedError, Timeout):
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def _read_index(home: Path, path: str) -> dict[str, Any] | None:
    """The index kept in `home`, if it provably belongs to the file at `path` as it is now."""
    try:
        index = json.loads((home / "index.json").read_bytes())
        if index["format"] != FORMAT or index["check"] != _check_of(index):
            return None
        copy = index["copy"] and home / index["copy"]
        if copy and _stamp(copy.stat()) != tuple(index["copy_stamp"]):
            return None
        index["copy"] = copy and str(copy)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    with open_source(path, digest=True) as source:
        young = index["read_ns"] - max(index["stamp"][1:3]) < _YOUNG
        if (
            source.stat.st_size != index["stamp"][0]
            or _sample(source.descriptor, index["stamp"][0]) != index["sample"]
        ):
            return None
        if _stamp(source.stat) == tuple(index["stamp"]) and not young:
            return index
        # Touched, moved or too young for its times to prove anything: the content decides.
        now, stamp = time.time_ns(), _stamp(source.stat)
        if (
            _sha256(source.descriptor) != index["sha256"]
            or _stamp(os.fstat(source.descriptor)) != stamp
        ):
            return None
    renewed = {**index, "stamp": list(stamp), "read_ns": now, "copy": copy and copy.name}
    with suppress(MachineError):
        _write_index(home, renewed)
    return {**index, "stamp": stamp}


def _build(path: str, home: Path, locked: bool, kept: ExitStack) -> dict[str, Any]:
    """Read the whole file, judge it, note where its contigs stand, and keep that in `home` if that
    can be written.
    """
    now = time.time_ns()
    with open_source(path, digest=True) as source:
        if not stat.S_ISREG(source.stat.st_mode):
            raise DataError("a pipe cannot be read at random", file=path, fix="give a file")
        layouts: dict[str, _Layout] = {}
        layout = _Layout(0)
        for event in scan(source):
            if isinstance(event, Header):
                layout = layouts[event.name] = _Layout(event.offset)
            else:
                layout.add(event)
        stamp, sha = _stamp(source.stat), source.sha256.hexdigest() if source.sha256 else ""
        plain = source.compression == "none" and not source.format
        plain = plain and not path.lower().endswith(_ZIPPED)
        sample = _sample(source.descriptor, source.stat.st_size)
    index: dict[str, Any] = {
        "format": FORMAT, "stamp": list(stamp), "read_ns": now, "sha256": sha, "sample": sample,
        "copy": None, "copy_stamp": None,
        "places": [[name, *one.place()] for name, one in layouts.items()],
    }  # fmt: skip
    if not plain or not all(one.even for one in layouts.values()):
        try:
            copy = home / f"{sha[:32]}.fa"
            index["places"], index["copy_stamp"] = _write_copy(path, copy, sha)
        except MachineError as fault:
            log.warning("%s; the copy goes to a temporary folder", fault)
            copy = (
                Path(kept.enter_context(tempfile.TemporaryDirectory(prefix="genodiff-")))
                / "genome.fa"
            )
            index["places"], index["copy_stamp"] = _write_copy(path, copy, sha)
        index["copy"] = copy.name
    else:
        copy = None
    if copy is None or copy.parent == home:
        try:
            _write_index(home, index)
        except MachineError as fault:
            log.warning("%s; the index is kept in memory", fault)
    if locked:
        for old in home.glob("*.fa"):
            if copy is None or old.name != copy.name:
                with suppress(OSError):
                    old.unlink()
        atomic.clear_leftovers(home)
    return {**index, "copy": copy and str(copy)}


def _write_copy(path: str, copy: Path, sha: str) -> tuple[list[list[Any]], tuple[int, ...]]:
    """The file as plain FASTA with one line for each contig: places and stamp. The content must
    still be `sha`.
    """
    log.info("%s cannot be read at random as it is: writing a plain copy to %s", path, copy)
    places: list[list[Any]] = []
    with open_source(path, digest=True) as source, atomic.open_atomic(copy) as out:
        at = 0
        for event in scan(source):
            if isinstance(event, Header):
                header = f"{chr(10) * bool(places)}>{event.name}\n".encode()
                at += out.write(header)
                places.append([event.name, 0, at, 0, 1])
            else:
                written = out.write(event.letters())
                at += written
                places[-1][1] += written
        out.write(b"\n")
        for place in places:
            place[3:] = [place[1], place[1] + 1]
        if source.sha256 is None or source.sha256.hexdigest() != sha:
            raise DataError(
                "changed while it was being read", file=path, fix="wait until it is complete"
            )
    return places, _stamp(copy.stat())


class _Layout:
    """Whether all lines of a record but its last have the same length, so that a base's place can
    be computed.
    """

    def __init__(self, offset: int) -> None:
        self.offset, self.length = offset, 0
        self.letters = self.end = 0  # of a line; 0 while the first line is open
        self.column = 0
        self.even, self.closed = True, False

    def place(self) -> Place:
        letters = self.letters or self.length
        return Place(self.length, self.offset, letters, letters + (self.end or 1))

    def add(self, piece: Piece) -> None:
        """Take the record's next stretch into account. Wrongly finding lines uneven costs a copy,
        no more.
        """
        self.length += len(piece.letters())
        data = piece.data
        if not self.column and not self.letters:
            data = data.lstrip(b"\r\n")  # blank lines above the first letter
            self.offset += len(piece.data) - len(data)
        body = data.rstrip(b"\r\n")
        tail = data[len(body) :]
        if not piece.raw or (self.closed and body):
            self.even = False
        if not self.even or self.closed or not data:
            return
        if not self.letters:
            first = body.find(b"\n")
            if first < 0 and not tail:
                self.column += len(body)
                return
            line = body[:first] if first >= 0 else body
            self.end = 2 if line.endswith(b"\r") or tail.startswith(b"\r") else 1
            self.letters = self.column + len(line.removesuffix(b"\r"))
        stride = self.letters + self.end
        ends = body[stride - 1 - self.column :: stride]
        even = ends.count(b"\n") == len(ends) == body.count(b"\n")
        returns = body.count(b"\r")
        if self.end == 2:
            even = even and body[stride - 2 - self.column :: stride].count(b"\r") == returns == len(
                ends
            )
        elif returns:
            even = False
        self.column = (self.column + len(body)) % stride
        if tail:
            full = self.column == self.letters and tail == (b"\r\n" if self.end == 2 else b"\n")
            self.closed, self.column = not full, 0
        self.even = even and self.column <= self.letters


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev


def _sample(descriptor: int, size: int) -> str:
    """sha256 of short stretches spread evenly over the file, its start and end among them."""
    digest = hashlib.sha256()
    for i in range(_SAMPLES):
        digest.update(os.pread(descriptor, _SAMPLE, max(0, size - _SAMPLE) * i // (_SAMPLES - 1)))
    return digest.hexdigest()


def _sha256(descriptor: int) -> str:
    digest, at = hashlib.sha256(), 0
    while block := os.pread(descriptor, 1 << 22, at):
        digest.update(block)
        at += len(block)
    return digest.hexdigest()


def _check_of(index: dict[str, Any]) -> str:
    """A checksum over the index itself: half a write by a foreign hand must not be taken for a
    whole one.
    """
    content = {k: v for k, v in index.items() if k != "check"}
    return sha256_json(content)


def _write_index(home: Path, index: dict[str, Any]) -> None:
    whole = {k: v for k, v in index.items() if k != "check"}
    atomic.write_text(home / "index.json", json.dumps({**whole, "check": _check_of(whole)}))
