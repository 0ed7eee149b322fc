"""Where samples go: a file with its sidecar, or a stream, in an order that a crash cannot mix up.

The sidecar `out.fa.json` never describes another file than the one beside it. So the journal first
notes the new file's sha256, the old sidecar is removed, the new file gets its name, and the new
sidecar is written; then the journal is removed.

With a screener the samples go to a temporary file first, and from there to their place once it has
let them pass.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from genodiff.generate.journal import SampleJournal
from genodiff.generate.screening import Screener
from genodiff.io.atomic import open_atomic, write_error, write_json
from genodiff.io.digest_writer import DigestWriter
from genodiff.io.target import is_stream
from genodiff.version import __version__

Target = str | Path | IO[bytes]


class SampleFile:
    """An output of samples: `file` to write to, and what the sidecar is to say."""

    def __init__(
        self,
        target: Target,
        sidecar: str | Path | None,
        journal: SampleJournal | None,
        screener: Screener | None = None,
    ) -> None:
        """The sidecar stands beside a file unless `sidecar` names another place."""
        is_path = isinstance(target, str | Path)
        if sidecar is None and is_path and not is_stream(str(target)):
            sidecar = f"{target}.json"
        self.target = sys.stdout.buffer if target == "-" else target
        self.sidecar, self.journal, self.screener = sidecar, journal, screener
        self.zipped = is_path and str(target).lower().endswith(".gz")
        self.told: dict[str, Any] = {}
        self._spool: IO[bytes] | None = None

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
        if not isinstance(self.target, str | Path):
            yield self.target
            self._remove_sidecar()
            self.target.flush()
            return
        with open_atomic(self.target) as raw:
            file = DigestWriter(raw)
            yield file
            file.flush()
            if not is_stream(self.target):
                self.told["file"] = file.describe()
                if self.journal is not None:
                    self.journal.seal(self.told["file"])
            self._remove_sidecar()

    def finish(self, values: dict[str, Any]) -> dict[str, Any]:
        """Write the sidecar, and return what it says; the journal has done its work."""
        told = {"genodiff": __version__, **values}
        told = {**{k: v for k, v in told.items() if k != "records"}, **self.told} | {
            "records": told["records"]
        }
        if self.sidecar is not None:
            write_json(self.sidecar, told)
        if self.journal is not None:
            self.journal.remove()
        return told

    def _remove_sidecar(self) -> None:
        if self.sidecar is not None:
            Path(self.sidecar).unlink(missing_ok=True)
