"""metrics.csv: one row per step, synced before each checkpoint, cut back on resuming.

step, tokens, seconds   steps done, bases seen (maskable ones), seconds of training, over all
                        sessions
loss_bits               bound of the step's windows, bits per base, all bases alike
loss_hex                what was optimised (nats per base of a full batch, soft-masked bases
                        weighted), as float.hex
grad_norm, lr           gradient norm before clipping; learning rate of the step
valid_bits, valid_ci    bound on the validation windows with averaged weights, and its 95 %
                        half-width; most are empty
tokens_per_s            pace of the step
weighted_bits           as loss_bits, with soft-masked bases weighted
skipped                 1 where a non-finite loss or gradient made the step leave the weights as
                        they were
"""

import csv
import io
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from genodiff.errors import CheckpointError
from genodiff.io import atomic
from genodiff.io.target import write_error

FILE = "metrics.csv"
COLUMNS = (
    "step", "tokens", "seconds", "loss_bits", "loss_hex", "grad_norm", "lr", "valid_bits",
    "valid_ci", "tokens_per_s",
    "weighted_bits", "skipped",
)  # fmt: skip


class Metrics:
    """The open file of a run that goes on after `step`; later and torn rows are removed."""

    def __init__(self, run: Path, step: int) -> None:
        self.path = run / FILE
        atomic.write_text(self.path, self._kept(step))
        # Unbuffered: a row that finds no room must not be tried again when the file is closed.
        self._file = self.path.open("ab", buffering=0)

    def append(self, **values: Any) -> None:
        """Add one row; it reaches the system at once. Raises `MachineError` where it cannot."""
        text = io.StringIO()
        csv.DictWriter(text, COLUMNS, lineterminator="\n").writerow(values)
        rest = memoryview(text.getvalue().encode())
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as fault:
            raise write_error(self.path, fault) from None

    def sync(self) -> None:
        """Bring all rows to the disk. Raises `MachineError` where that fails."""
        try:
            os.fsync(self._file.fileno())
        except OSError as fault:
            raise write_error(self.path, fault) from None

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):
            self._file.close()

    def _kept(self, step: int) -> str:
        header = ",".join(COLUMNS) + "\n"
        if not self.path.is_file() or not step:
            return header
        lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        if not lines or lines[0] != header:
            what = "has other columns than this genodiff writes"
            raise CheckpointError(what, file=self.path, fix="move it away")
        steps = [(line.split(",", 1)[0], line) for line in lines[1:] if line.endswith("\n")]
        return header + "".join(line for n, line in steps if n.isdecimal() and int(n) <= step)
