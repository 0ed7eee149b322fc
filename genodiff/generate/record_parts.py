"""What is drawn of a long record that is not whole yet: a job that is stopped goes on after it.

A record is a function of (seed, number), and what a network keeps of the past one of what is filled
(`block_reading.py`). So the letters so far are all that is kept of a record, with the evaluations
that they took. They go on to the same bytes in any batch.
"""

import json
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from genodiff.generate.samples import Ids

EACH = 1024
"""Positions of a record that are drawn before they are kept."""


class RecordParts:
    """The parts of records from number `first` on: those that are kept, and how to `keep` more."""

    def __init__(
        self, kept: Iterable[bytes], first: int = 0, keep: Callable[[bytes], None] | None = None
    ) -> None:
        self._keep = keep
        self._kept: dict[int, list[tuple[int, int, int, Ids]]] = {}
        self._ends: dict[int, int] = {}
        for part in kept:
            head, _, ids = part.partition(b"\n")
            number, start, rounds, nfe, kind = json.loads(head)
            if number >= first:
                own = start, rounds, nfe, np.frombuffer(ids, kind)
                self._kept.setdefault(number, []).append(own)

    def put_back(self, number: int, ids: Ids) -> tuple[int, int]:
        """Write what is kept of a record into `ids`; its rounds that are done, its evaluations."""
        rounds = nfe = 0
        for start, rounds, nfe, part in self._kept.pop(number, []):  # noqa: B007
            ids[start : start + len(part)] = part
            self._ends[number] = start + len(part)
        return rounds, nfe

    def add(
        self, number: int, ids: Ids, plan: Sequence[tuple[int, int]], done: int, nfe: int
    ) -> None:
        """Keep a record whose first `done` of the rounds of its `plan` are filled, if due."""
        start, end = self._ends.get(number, plan[0][0]), plan[done - 1][1]
        if self._keep is None or done == len(plan) or end - start < EACH:
            return
        head = json.dumps([number, start, done, nfe, ids.dtype.str])
        self._keep(head.encode() + b"\n" + ids[start:end].tobytes())
        self._ends[number] = end
