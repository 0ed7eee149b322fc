"""Where samples go: a file or a stream, whose old sidecar goes before the file gets its name.

The sidecar `out.fa.json` never describes another file than the one beside it. So the job's journal
is sealed first, the old sidecar is removed, the new file gets its name, and the new sidecar is
written; then the journal is removed.

With a screener the samples go to a temporary file first, and from there to their place once it has
let them pass.
"""

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from genodiff.generate.screening import Screener
from genodiff.io.atomic import open_atomic, write_error
from genodiff.io.fasta import Record
from genodiff.io.fasta_writer import write_fasta
from genodiff.io.genbank_writer import Mark, format_genbank
from genodiff.io.target import is_genbank, is_stream


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


class SampleFile:
    """An output of samples, GenBank where its name ends so; `told` is what a sidecar says of it.

    `sidecar` is the file that describes it, "-" where none does. `line_width` is of FASTA.
    """

    def __init__(
        self, path: str, sidecar: str, *, line_width: int = 60, screener: Screener | None = None
    ) -> None:
        self.path, self.sidecar, self.screener = path, sidecar, screener
        self.line_width, self.zipped = line_width, path.lower().endswith(".gz")
        self.is_genbank = is_genbank(path)
        self.told: dict[str, Any] = {}
        self._spool: IO[bytes] | None = None

    @property
    def mark(self) -> str:
        """What a header says of a screener, which lets nothing else be written."""
        return "" if self.screener is None else f" screened={self.screener.name}"

    @contextmanager
    def open(self) -> Iterator[Any]:
        """A binary file, which gets its name when the block ends well.

        With a screener, the block ends with `screen`.
        """
        if self.screener is None:
            with self._open_target() as file:
                yield file
            return
        with tempfile.TemporaryDirectory(prefix="genodiff-") as folder:
            path = Path(folder) / "samples"
            try:
                with open(path, "w+b") as self._spool:
                    yield self._spool
            except OSError as fault:
                raise write_error(path, fault) from None
            if "screen" not in self.told:
                raise AssertionError("samples that nobody has screened")
            with open(path, "rb") as passed, self._open_target() as file:
                shutil.copyfileobj(passed, file)

    def write_records(
        self, file: IO[bytes], records: Iterable[tuple[Record, Sequence[Mark]]]
    ) -> None:
        """Write records with their features, which FASTA leaves out, to the open file."""
        if self.is_genbank:
            for one, marks in records:
                file.write(format_genbank(one.name, one.description, one.sequence, marks))
            return
        width = self.line_width or sys.maxsize
        write_fasta(file, (one for one, _ in records), line_width=width, zipped=self.zipped)

    def screen(self) -> None:
        """Hand what is written so far to the screener, if there is one.

        Within the block of `open`, so that no other file of the request gets its name either.
        Raises `GenodiffError` where it refuses.
        """
        if self.screener is not None:
            assert self._spool is not None
            self._spool.flush()
            found = self.screener.check(Path(self._spool.name), zipped=self.zipped)
            self.told["screen"] = found

    @contextmanager
    def _open_target(self) -> Iterator[Any]:
        if self.path == "-":
            yield sys.stdout.buffer
            self._remove_sidecar()
            sys.stdout.buffer.flush()
            return
        with open_atomic(self.path) as raw:
            file = DigestWriter(raw)
            yield file
            file.flush()
            if not is_stream(self.path):
                self.told["file"] = file.describe()
            self._remove_sidecar()

    def _remove_sidecar(self) -> None:
        if self.sidecar != "-":
            Path(self.sidecar).unlink(missing_ok=True)
