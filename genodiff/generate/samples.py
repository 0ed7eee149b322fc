"""One record that is drawn, whole or in parts, and the settings that fit the model that draws it.

A record is a function of (seed, number), and what a network keeps of the past one of what is filled
(`block_reading.py`). So of a long record that is not whole yet the letters so far are all that is
kept, with the evaluations that they took: a job that is stopped goes on after them. They go on to
the same bytes in any batch.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import UsageError, did_you_mean
from genodiff.generate.sampling import Sampling
from genodiff.runs.trained_model import TrainedModel

Ids = NDArray[np.uint8]
EACH = 1024
"""Positions of a record that are drawn before they are kept."""


class Sample(NamedTuple):
    """One record: its number (from 0), its ids, and how often the network was evaluated for it."""

    number: int
    ids: Ids
    nfe: int
    calls: int | None = None  # sequences that an oracle was asked for, where it was guided
    log_z: float | None = None  # log of the estimate of E[e^(strength x reward)], of `smc`

    def pack(self) -> bytes:
        """All but the number, as bytes."""
        ids = np.ascontiguousarray(self.ids)
        head = json.dumps([ids.dtype.str, self.nfe, self.calls, self.log_z])
        return head.encode() + b"\n" + ids.tobytes()

    @classmethod
    def unpack(cls, number: int, packed: bytes) -> "Sample":
        """The record whose bytes these are."""
        head, _, ids = packed.partition(b"\n")
        kind, *spent = json.loads(head)
        return cls(number, np.frombuffer(ids, kind), *spent)


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


def choose_sampler(how: Sampling | None, model: TrainedModel) -> Sampling:
    """`how` with its sampler named, and its memory: on for a model that was trained with one.

    Raises `UsageError` for a sampler that does not fit the model's objective.
    """
    objective = model.objective
    how, known = how or Sampling(), objective.samplers
    if how.memory is None:
        how = replace(how, memory="on" if model.recalls else "off")
    if how.sampler is None:
        how = replace(how, sampler=next(iter(known)))
    if how.sampler not in known:
        what = f"sampler '{how.sampler}' does not go with objective {objective.name}"
        raise UsageError(what, fix=f"choose {', '.join(known)}")
    if how.memory != "off" and objective.kind != "masked":
        what = f"--memory is for masked networks, and this is {objective.name}"
        raise UsageError(what, fix="leave it out")
    if how.allow_n and objective.kind == "uniform":
        what = "--allow-n is for networks of masks: N is not part of the noise"
        raise UsageError(what, fix="leave it out")
    if how.stride is not None and objective.kind == "block":
        what = "--stride is for windows, and this model draws one block after the other"
        raise UsageError(what, fix="leave it out")
    own = list(known[str(how.sampler)].settings)
    for name in how.options:
        if name not in own:
            fix = did_you_mean(name, own) if own else "leave --sampler-option out"
            raise UsageError(f"sampler '{how.sampler}' has no setting '{name}'", fix=fix)
    return how


def refuse_after_gap(model: TrainedModel) -> UsageError:
    """The error of a gap that something stands after, for a model that only goes on."""
    what = (
        f"a model of objective {model.objective.name} only continues a sequence: a "
        "gap must be at the end"
    )
    return UsageError(what, fix="fill gaps with a model of --objective mdlm")
