"""Where samples go: a file or a stream, whose old sidecar goes before the file gets its name.

The sidecar `out.fa.json` never describes another file than the one beside it. So the job's journal
is sealed first, the old sidecar is removed, the new file gets its name, and the new sidecar is
written; then the journal is removed.

With a screener the samples go to a temporary file first, and from there to their place once it has
let them pass.

A screener that samples are handed to before they are written: `--screen CMD`.

CMD is any program that takes a FASTA file as its last argument, such as commec or SecureDNA's
client with a script around it. It sees a copy of exactly what would be written, uncompressed, in a
temporary folder. Exit status 0 lets the samples pass. Anything else refuses all of them, and
nothing is written. No shell reads CMD.
"""

import gzip
import math
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from genodiff.errors import GenodiffError, MachineError, UsageError
from genodiff.io.atomic import open_atomic
from genodiff.io.fasta import Record
from genodiff.io.fasta_writer import write_fasta
from genodiff.io.file_kinds import sha256_file
from genodiff.io.genbank_writer import Mark, format_genbank
from genodiff.io.target import describe_file, is_genbank, is_stream, write_error

_LONGEST = 200


class Screener:
    """A command and its limit in seconds (None: it may take for ever)."""

    def __init__(self, command: str | Sequence[str], timeout: float | None = None) -> None:
        """Raises `UsageError` for no command, `MachineError` for a program that is not there."""
        try:
            words = shlex.split(command) if isinstance(command, str) else list(command)
        except ValueError as fault:
            what = f"--screen {command}: {str(fault).lower()}"
            raise UsageError(what, fix="close the quotes") from None
        if not words:
            raise UsageError("--screen without a command", fix="give --screen 'PROGRAM OPTIONS'")
        if timeout is not None and not (timeout > 0 and math.isfinite(timeout)):
            raise UsageError(f"--screen-timeout {timeout:g}", fix="give seconds above 0")
        found = shutil.which(words[0])
        if found is None:
            what = f"--screen {words[0]}: there is no such program, or it cannot be run"
            raise MachineError(what, fix="install it, or give its path")
        self.words, self.timeout, self._program = words, timeout, os.path.abspath(found)

    @property
    def name(self) -> str:
        """The program's name, for headers."""
        return "_".join(Path(self.words[0]).name.split())

    def check(self, file: Path, *, zipped: bool) -> dict[str, Any]:
        """Hand a copy of `file` to the program; what the sidecar says of it.

        Raises `GenodiffError` where it refuses or gives no answer.
        """
        with tempfile.TemporaryDirectory(prefix="genodiff-screen-") as folder:
            copy = Path(folder) / "samples.fa"
            try:
                with (gzip.open if zipped else open)(file, "rb") as source, open(copy, "wb") as to:
                    shutil.copyfileobj(source, to)
            except OSError as fault:
                raise write_error(copy, fault) from None
            digest = sha256_file(copy)
            self._run(copy)
        return {"command": self.words, "status": 0, "sha256": digest}

    def _run(self, copy: Path) -> None:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as log:
            try:
                process = subprocess.Popen(
                    [*self.words, str(copy)], executable=self._program, stdin=subprocess.DEVNULL,
                    stdout=out, stderr=log, start_new_session=True,
                )  # fmt: skip
            except OSError as fault:
                what = f"--screen {self.words[0]} cannot be started: {fault.strerror}"
                raise MachineError(what, fix="run it by hand once") from None
            try:
                status = process.wait(self.timeout)
            except subprocess.TimeoutExpired:
                what = f"the screener {self.name} gave no answer in {self.timeout:g} s"
                fix = "give a longer --screen-timeout, or fewer samples"
                raise GenodiffError(f"{what}: nothing is written", fix=fix) from None
            finally:
                if process.poll() is None:  # and whatever it has started
                    if hasattr(os, "killpg"):
                        with suppress(ProcessLookupError):
                            os.killpg(process.pid, signal.SIGKILL)
                    process.kill()
                    process.wait()
            if not status:
                return
            last = _read_last(log) or _read_last(out)
            ended = f"exit status {status}" if status > 0 else f"ended by signal {-status}"
            ended += f": {last[:_LONGEST]}" if last else ""
            what = f"the screener {self.name} refused the samples ({ended}): nothing is written"
            raise GenodiffError(what, fix="see its report, and sample something else")


def _read_last(file: IO[bytes]) -> str:
    """The last line of a file that is not blank; empty where there is none."""
    file.seek(0)
    lines = file.read().decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


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
        with open_atomic(self.path) as file:
            yield file
            file.flush()
            self._remove_sidecar()
        if not is_stream(self.path):
            self.told["file"] = describe_file(self.path)

    def _remove_sidecar(self) -> None:
        if self.sidecar != "-":
            Path(self.sidecar).unlink(missing_ok=True)
