"""One record that was drawn, and the settings that fit the model that draws it."""

import json
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import UsageError, did_you_mean
from genodiff.generate.sampling import Sampling
from genodiff.runs.model import TrainedModel

Ids = NDArray[np.uint8]


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
        raise UsageError(
            f"sampler '{how.sampler}' does not go with objective {objective.name}",
            fix=f"choose {', '.join(known)}",
        )
    if how.memory != "off" and objective.kind != "masked":
        what = f"--memory is for masked networks, and this is {objective.name}"
        raise UsageError(what, fix="leave it out")
    if how.allow_n and objective.kind == "uniform":
        what = "--allow-n is for networks of masks: N is no letter of the noise"
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
        f"a model of objective {model.objective.name} only goes on: nothing may stand after a gap"
    )
    return UsageError(what, fix="fill gaps with a model of --objective mdlm")
