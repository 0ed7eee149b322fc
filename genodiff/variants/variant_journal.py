"""Scores of an unfinished request, kept beside the output: OUT.partial.

A line of JSON for each record, in order, and then for each haplotype that is scored.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from genodiff.io.partial_output import PartialOutput, parse_line
from genodiff.variants.scored_variants import AltScore

_KEPT = len(AltScore._fields) - 1  # `copies` are found again
_EVERY = 1.0  # seconds between writes; what is not written yet is lost with a killed process


class VariantJournal(PartialOutput[tuple[AltScore, ...]]):
    """The scores of one request so far; `kept` is of how many records and haplotypes."""

    holds = "scores of variants of a request that is not done"
    noun = "scores"

    def __init__(self, path: str | Path, request: str) -> None:
        super().__init__(path, request)
        self._written = 0.0

    def append(self, scores: tuple[AltScore, ...]) -> None:
        """Keep the next record's or haplotype's scores. Raises `MachineError` for a full disk."""
        flush = time.monotonic() - self._written > _EVERY
        self._append(json.dumps([one[:_KEPT] for one in scores]).encode() + b"\n", flush=flush)
        if flush:
            self._written = time.monotonic()

    def scores(self) -> Iterator[tuple[AltScore, ...]]:
        """All that is kept, in order."""
        return self._read_kept()

    def _read_entries(self, file: IO[bytes]) -> Iterator[tuple[tuple[AltScore, ...], int]]:
        for line in file:
            found = parse_line(line)
            if not isinstance(found, list):
                return
            alts = tuple(AltScore(*one)._replace(flags=tuple(one[-1])) for one in found)
            yield alts, len(line)
