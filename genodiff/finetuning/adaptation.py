"""Continued pretraining on a task's own train sequences, before a fit: labels are not used.

    OUT/adapted/KEY/state.safetensors   where it is, while it runs
    OUT/adapted/KEY/model.safetensors   the network's weights after the last step
    OUT/adapted/KEY/adapted.json        from what, on what, the losses, the weights' hash: last

The loss is the network's own (MDLM's bound for a masked diffusion), in nats per base, on whole
sequences. Only the train rows of the seed's split are read: validation and test sequences stay
unseen, so that what they say stays honest. Every draw is a function of (seed, step, example), and a
run that is killed goes on to the same bits. Networks of one strand see either strand at random,
unless the task's sequences are oriented.

Whether it pays is a question for validation; the sweep has adapted networks as lines of their own.
Source: Gururangan et al., 2020, "Don't stop pretraining", arXiv 2004.10964 (task-adaptive).
"""

import hashlib
import logging
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim import AdamW

from genodiff.backbones.backbone import Backbone
from genodiff.counter import Purpose, uniform_rows, uniforms
from genodiff.diffusion.masked import Clean
from genodiff.diffusion.objective import Draws, Objective
from genodiff.errors import CheckpointError, GenodiffError, Interrupted
from genodiff.finetuning.batches import EncodedPart, shuffle_batches, split_passes
from genodiff.finetuning.fit_state import (
    SAVE_SECONDS,
    STATE,
    FitState,
    WorkClock,
    read_state,
    write_state,
)
from genodiff.io import atomic
from genodiff.io.file_lock import hold_file
from genodiff.io.identity import sha256_json, stamp_time
from genodiff.runs.model import collect_tensors, fill_module
from genodiff.runs.sealed_files import encode_tensors, read_json, read_tensors
from genodiff.runs.sections import OptimSettings
from genodiff.training.optimizer import adamw, learning_rate, read_moments, set_moments
from genodiff.version import __version__, name_revision

ADAPTED, RECORD, MODEL = "adapted", "adapted.json", "model.safetensors"
STEPS = 500
"""Steps of an adapted model where no number is given."""
STEP_BASES = 8192
"""Bases of a step, about."""
_OPTIM = OptimSettings(lr=1e-3, warmup_steps=50, lr_min_ratio=0.0)
_SHOWN = 20  # losses that the record keeps
_SHARED = 1  # sub-index of what a step's examples share

_log = logging.getLogger("genodiff")
Watch = Callable[[int, int, float], None]
"""(step, steps, seconds): called after every step; may raise `Interrupted` to save and stop."""


class AdaptationPlan(NamedTuple):
    """What decides an adaptation, beside its sequences and the weights that it begins from."""

    steps: int
    seed: int
    both_strands: bool
    source: str


def adapt_network(
    backbone: Backbone,
    objective: Objective,
    part: EncodedPart,
    plan: AdaptationPlan,
    out: Path,
    complement: tuple[int, ...] | None = None,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Train the network on `part` in place, or fill in the weights of an adaptation that is done.

    `part` has the train rows alone; its labels are not read. Returns the record, as `adapted.json`
    has it. Raises `GenodiffError` where the loss is not finite or no base can be masked, and
    `Interrupted` with the state saved.
    """
    about = {
        "steps": plan.steps, "seed": plan.seed, "both_strands": plan.both_strands,
        "source": plan.source, "sequences": hash_sequences(part), "objective": objective.name,
        "step_bases": STEP_BASES, "optim": _OPTIM.model_dump(mode="json"),
    }  # fmt: skip
    key = sha256_json(about)[:16]
    folder = out / ADAPTED / key
    folder.mkdir(parents=True, exist_ok=True)
    with hold_file(folder / ".lock", "adapts the same network"):
        try:
            record = read_json(folder / RECORD)
            tensors = read_tensors(folder / MODEL, None, record["weights_sha256"])
        except (CheckpointError, KeyError):
            run = _AdaptationRun(backbone, objective, part, plan, complement)
            record = about | run.train(folder / STATE, key, watch)
            weights = encode_tensors(collect_tensors(backbone))
            record |= {
                "n_sequences": part.n, "bases": int(part.lengths.sum()),
                "weights_sha256": hashlib.sha256(weights).hexdigest(),
                "genodiff": __version__, "git": name_revision(), "created": stamp_time(),
            }  # fmt: skip
            atomic.write_bytes(folder / MODEL, weights)
            atomic.write_json(folder / RECORD, record)
            (folder / STATE).unlink(missing_ok=True)
        else:
            device = next(backbone.parameters()).device
            fill_module(backbone, {k: v.to(device) for k, v in tensors.items()})
    return record


def describe_adaptation(record: dict[str, Any]) -> dict[str, Any]:
    """What a row says of an adaptation."""
    kept = ("steps", "n_sequences", "bases", "bits_first", "bits_last", "seconds")
    return {name: record[name] for name in kept} | {"weights": record["weights_sha256"][:12]}


def hash_sequences(part: EncodedPart) -> str:
    """sha256 of the sequences of a part in their order, without labels; 16 hex digits."""
    found = hashlib.sha256()
    for start, length in zip(part.starts, part.lengths, strict=True):
        found.update(part.ids[start : start + length].tobytes() + b"\xff")
    return found.hexdigest()[:16]


class _AdaptationRun:
    """The mutable state of an adaptation."""

    def __init__(
        self,
        backbone: Backbone,
        objective: Objective,
        part: EncodedPart,
        plan: AdaptationPlan,
        complement: tuple[int, ...] | None,
    ) -> None:
        self.backbone, self.objective, self.part, self.plan = backbone, objective, part, plan
        self.device = next(backbone.parameters()).device
        paired = bool(getattr(backbone, "paired", False))
        turns = plan.both_strands and not paired and complement is not None
        self.complement = np.array(complement) if turns else None
        self.strands = 2 if paired else 1
        self.targets = np.array(objective.diffusion.targets)
        self.rows = int(np.clip(STEP_BASES // max(1, part.lengths.mean()), 8, 256))
        self.optimizer: AdamW = adamw(backbone, _OPTIM)
        self.step, self.seconds = 0, 0.0
        self.losses: list[float] = []

    def train(self, state: Path, identity: str, watch: Watch | None) -> dict[str, Any]:
        """Take the steps that are left, from `state` where it exists."""
        if state.exists():
            self._load(state, identity)
        clock, saved = WorkClock(self.seconds, self.device.type), time.monotonic()
        epoch, batches = -1, [np.zeros(0, np.int64)]
        per_epoch = math.ceil(self.part.n / self.rows)
        self.backbone.train()
        while self.step < self.plan.steps:
            if self.step // per_epoch != epoch:
                epoch = self.step // per_epoch
                batches = shuffle_batches(self.part.lengths, self.rows, self.plan.seed, epoch)
            self.losses.append(self._take_step(batches[self.step % per_epoch]))
            self.step += 1
            self.seconds = clock.seconds
            if time.monotonic() - saved > SAVE_SECONDS:
                self._save(state, identity)
                saved = time.monotonic()
            if watch is not None:
                try:
                    watch(self.step, self.plan.steps, self.seconds)
                except Interrupted:
                    self._save(state, identity)
                    raise
        self.backbone.eval()
        bits = np.array_split(np.array(self.losses) / math.log(2), min(_SHOWN, len(self.losses)))
        shown = [round(float(some.mean()), 5) for some in bits]
        return {
            "bits": shown, "bits_first": shown[0], "bits_last": shown[-1], "seconds": self.seconds,
        }  # fmt: skip

    def _take_step(self, rows: NDArray[np.int64]) -> float:
        """One step on the examples at `rows`; returns its loss in nats per base."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.step, _OPTIM, self.plan.steps)
        slots = np.arange(len(rows))
        numbers = self.step * self.rows + slots
        x0, lengths = (t.numpy() for t in self.part.collate(rows))
        if self.complement is not None:
            turned = uniform_rows(self.plan.seed, Purpose.STRAND, numbers, 1)[:, 0] < 0.5
            for row in np.flatnonzero(turned):
                n = lengths[row]
                x0[row, :n] = self.complement[x0[row, :n][::-1]]
        maskable = np.isin(x0, self.targets) & (np.arange(x0.shape[1]) < lengths[:, None])
        n_bases = int(maskable.sum())
        if not n_bases:
            raise GenodiffError("no base to learn from", fix="give sequences with fewer N")
        u_mask = uniform_rows(self.plan.seed, Purpose.MASK, numbers, x0.shape[1])
        u_time = uniform_rows(self.plan.seed, Purpose.TIME, numbers, 1)[:, 0]
        shared = float(uniforms(self.plan.seed, Purpose.TIME, self.step, 1, _SHARED)[0])
        even = bool((lengths == x0.shape[1]).all())
        total = 0.0
        for some in split_passes(lengths, self.device.type, self.strands):
            clean = Clean(
                self._tensor(x0[some]),
                self._tensor(maskable[some]),
                lengths=None if even else self._tensor(lengths[some]),
            )
            draws = Draws(
                self._tensor(u_mask[some]),
                self._tensor(u_time[some]),
                shared,
                self._tensor(slots[some]),
                len(rows),
            )
            nats = self.objective.loss(self.backbone, clean, draws).nats
            (nats / n_bases).backward()
            total += float(nats.detach())
        norm = float(torch.nn.utils.clip_grad_norm_(list(self.backbone.parameters()), _OPTIM.clip))
        if not (math.isfinite(norm) and math.isfinite(total)):
            raise GenodiffError(
                f"adapting, step {self.step + 1}: the loss or its gradient is not finite",
                fix="leave the adapted model out",
            )
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total / n_bases

    def _tensor(self, values: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(self.device)

    def _save(self, path: Path, identity: str) -> None:
        groups = {
            "now": collect_tensors(self.backbone),
            "adam": read_moments(self.optimizer, self.backbone),
        }
        counters = {"step": self.step, "seconds": self.seconds, "losses": self.losses}
        write_state(path, FitState(groups, counters), identity)

    def _load(self, path: Path, identity: str) -> None:
        try:
            groups, counters = read_state(path, identity, ("now", "adam"))
        except CheckpointError as fault:
            _log.warning("%s: it begins again", fault)
            return
        fill_module(self.backbone, groups["now"])
        set_moments(self.optimizer, self.backbone, groups["adam"])
        self.step, self.seconds = counters["step"], counters["seconds"]
        self.losses = list(counters["losses"])
