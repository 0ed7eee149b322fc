"""A screener that samples are handed to before they are written: `--screen CMD`.

CMD is any program that takes a FASTA file as its last argument, such as commec or SecureDNA's
client with a script around it. It sees a copy of exactly what would be written, uncompressed, in a
temporary folder. Exit status 0 lets the samples pass. Anything else refuses all of them, and
nothing is written. No shell reads CMD.
"""

import gzip
import hashlib
import math
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from genodiff.errors import GenodiffError, MachineError, UsageError
from genodiff.io.atomic import write_error

_LONGEST = 200


def open_screener(
    command: str | Sequence[str] | None, timeout: float | None = None
) -> "Screener | None":
    """The screener of a command, if there is one. Raises as `Screener` does."""
    if command is not None:
        return Screener(command, timeout)
    if timeout is not None:
        raise UsageError("--screen-timeout is for --screen", fix="leave it out")
    return None


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
            with open(copy, "rb") as handed:
                digest = hashlib.file_digest(handed, "sha256").hexdigest()
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
                raise GenodiffError(
                    f"the screener {self.name} gave no answer in {self.timeout:g} s: nothing is "
                    "written",
                    fix="give a longer --screen-timeout, or fewer samples",
                ) from None
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
            raise GenodiffError(
                f"the screener {self.name} refused the samples ({ended}"
                + (f": {last[:_LONGEST]}" if last else "")
                + "): nothing is written",
                fix="see what it found, and sample something else",
            )


def _read_last(file: IO[bytes]) -> str:
    """The last line of a file that is not blank; empty where there is none."""
    file.seek(0)
    lines = file.read().decode("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
