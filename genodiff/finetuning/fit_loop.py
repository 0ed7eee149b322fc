"""The loop of every fit: steps, validation, the best epoch, and a state that goes on exactly.

With `ema`, validation judges an exponential moving average of the weights, and that is kept
(Polyak and Juditsky, 1992; the decay rises to its value from (1 + n) / (10 + n) at update n).

What is learned is a `Lesson`: examples, what a batch of them costs, and a measure on a validation
part. There is no test part here: a fit cannot see one. Every draw is a function of (seed, epoch,
example). So the state of a fit is the weights, AdamW's moments and a few numbers. It is one file,
written atomically at the end of every epoch and every minute. A fit that is killed goes on to the
same bits on the same machine. A state is believed where its hash and its identity agree.

Seconds are those of work. On a busy machine a fit that has a core for half of the time takes twice
as long, and budgets and tables should not depend on that. So time on a CPU is the smaller of wall
time and of the processor time of the process. On a GPU, where the processor waits, it is wall time.
"""

import hashlib
import json
import logging
import math
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import save as to_safetensors
from torch import Tensor
from torch.optim import AdamW

from genodiff.errors import CheckpointError, GenodiffError, Interrupted
from genodiff.finetuning.batches import Index, draw_turned, shuffle_batches
from genodiff.finetuning.head import FeatureReader
from genodiff.finetuning.protocol import FitSettings
from genodiff.io import atomic
from genodiff.io.file_kinds import find_plain_path
from genodiff.runs.model import collect_tensors, fill_module
from genodiff.runs.sealed_files import read_tensors
from genodiff.tasks.metrics import is_better
from genodiff.training.optimizer import WeightAverage, has_weight_decay, read_moments, set_moments

_log = logging.getLogger("genodiff")

_COUNTERS = ("epoch", "batch", "step", "loss", "seconds", "best_epoch")  # of a state
STATE = "state.safetensors"
SAVE_SECONDS = 60.0
"""A state is written as often as this."""


class Epoch(NamedTuple):
    """The result of an epoch: losses in nats per example, and the validation metric.

    For regression the loss is that of the standardised value.
    """

    epoch: int
    step: int
    train_loss: float
    valid_loss: float
    valid: float


class Tick(NamedTuple):
    """Where a fit is, for a progress line."""

    epoch: int
    epochs: int
    step: int
    steps: int
    seconds: float
    valid: float | None


Watch = Callable[[Tick], None]


class Lesson(ABC):
    """What a fit learns: `lengths` are those of its examples, `metric` chooses the epoch."""

    metric: str
    lengths: Index

    def __init__(self, network: FeatureReader, settings: FitSettings, seed: int) -> None:
        self.network, self.settings, self.seed = network, settings, seed

    def begin_epoch(self, epoch: int) -> None:  # noqa: B027  (most show the same in each)
        """Make ready what an epoch shows."""

    def draw_turned(self, epoch: int) -> NDArray[np.bool_] | None:
        """Which examples are shown from the other strand in an epoch."""
        if self.network.strands not in ("average", "augment"):
            return None
        return draw_turned(self.seed, epoch, len(self.lengths))

    @abstractmethod
    def learn(self, rows: Index, epoch: int, turned: NDArray[np.bool_] | None) -> float:
        """Add the gradients of the mean cost of the examples at `rows`; the sum of their costs."""

    @abstractmethod
    def judge(self, network: Any) -> tuple[float, float]:
        """(cost of an example, metric) of a network on the validation part."""


class FitLoop:
    """A fit that stands where its state says; `best` are the weights of the best epoch so far."""

    def __init__(self, lesson: Lesson) -> None:
        settings, network = lesson.settings, lesson.network
        self.lesson = lesson
        named = [
            (name, parameter)
            for name, parameter in network.named_parameters()
            if parameter.requires_grad and not (network.frozen and name.startswith("backbone."))
        ]
        self.groups: list[dict[str, Any]] = [
            {
                "params": [p for n, p in named if has_weight_decay(n, p)],
                "weight_decay": settings.weight_decay,
            },
            {"params": [p for n, p in named if not has_weight_decay(n, p)], "weight_decay": 0.0},
        ]
        self.average = WeightAverage(network, settings.ema) if settings.ema else None
        self.epoch, self.batch, self.step, self.loss, self.seconds = 0, 0, 0, 0.0, 0.0
        self.history: list[Epoch] = []
        self.best_epoch = 0
        self.best: dict[str, Tensor] = {}

    @cached_property
    def optimizer(self) -> AdamW:
        """Made at the first step: a plan needs none, and its imports take two seconds."""
        settings = self.lesson.settings
        groups = [group for group in self.groups if group["params"]]
        return AdamW(groups, lr=settings.lr, betas=settings.betas, fused=True)

    @property
    def trained(self) -> int:
        """How many weights are trained."""
        return sum(p.numel() for group in self.groups for p in group["params"])

    @property
    def steps(self) -> int:
        """Steps of the whole fit."""
        return self.lesson.settings.steps(len(self.lesson.lengths))

    def run(
        self, *, state: Path | None = None, identity: str = "", watch: Watch | None = None
    ) -> Iterator[Epoch]:
        """Train, and give each epoch as it ends, those of `state` first; at last take the best.

        `identity` names the fit that a state belongs to: a foreign one, or a corrupt one, is
        removed with a warning. `watch` is called after every step and may raise `Interrupted` to
        save and stop. Raises `GenodiffError` for a loss that is not finite.
        """
        lesson, settings = self.lesson, self.lesson.settings
        per_epoch = math.ceil(len(lesson.lengths) / settings.batch_size)
        steps = self.steps
        epochs = math.ceil(steps / per_epoch)
        if state is not None and state.exists():
            try:
                self.load(state, identity)
            except CheckpointError as fault:
                _log.warning("%s: starting again", fault)
                state.unlink()
        yield from self.history
        clock, saved = WorkClock(self.seconds, lesson.network.device.type), time.monotonic()
        while self.epoch < epochs and (
            settings.patience is None or len(self.history) - 1 - self.best_epoch < settings.patience
        ):
            batches = shuffle_batches(lesson.lengths, settings.batch_size, lesson.seed, self.epoch)
            turned = lesson.draw_turned(self.epoch)
            lesson.begin_epoch(self.epoch)
            while self.batch < len(batches) and self.step < steps:
                for group in self.optimizer.param_groups:
                    group["lr"] = settings.learning_rate(self.step, steps)
                self.loss += self._step(batches[self.batch], turned)
                self.batch += 1
                self.step += 1
                self.seconds = clock.seconds
                if state is not None and time.monotonic() - saved > SAVE_SECONDS:
                    self.save(state, identity)
                    saved = time.monotonic()
                if watch is not None:
                    valid = self.history[-1].valid if self.history else None
                    try:
                        watch(Tick(self.epoch, epochs, self.step, steps, self.seconds, valid))
                    except Interrupted:
                        if state is not None:
                            self.save(state, identity)
                        raise
            self._close_epoch(sum(map(len, batches[: self.batch])))
            self.seconds = clock.seconds
            if state is not None:
                self.save(state, identity)
                saved = time.monotonic()
            yield self.history[-1]
        fill_module(lesson.network, {k: v.to(lesson.network.device) for k, v in self.best.items()})
        lesson.network.eval()

    def _step(self, rows: Index, turned: NDArray[np.bool_] | None) -> float:
        """One step on the examples at `rows`; returns the loss summed over them."""
        lesson = self.lesson
        lesson.network.train()
        total = lesson.learn(rows, self.epoch, turned)
        parameters = lesson.network.parameters()
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, lesson.settings.clip))
        if not (math.isfinite(norm) and math.isfinite(total)):
            what = f"step {self.step + 1}: the loss or its gradient is not finite"
            raise GenodiffError(what, fix="lower --lr, or use --precision fp32")
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        if self.average is not None:
            self.average.update(lesson.network)
        return total

    def _close_epoch(self, seen: int) -> None:
        """Validate, note the epoch, keep its weights if it is the best so far."""
        judged = self.lesson.network if self.average is None else self.average.module
        loss, value = self.lesson.judge(judged)
        self.history.append(Epoch(self.epoch, self.step, self.loss / max(1, seen), loss, value))
        best = self.history[self.best_epoch].valid
        if len(self.history) == 1 or is_better(self.lesson.metric, value, best):
            self.best_epoch = self.epoch
            self.best = {k: v.clone() for k, v in collect_tensors(judged).items()}
        self.epoch, self.batch, self.loss = self.epoch + 1, 0, 0.0

    def save(self, path: Path, identity: str) -> None:
        """Write where the fit is, atomically; `identity` names the fit."""
        network = self.lesson.network
        groups = {
            "now": collect_tensors(network),
            "best": self.best,
            "adam": read_moments(self.optimizer, network),
        }
        if self.average is not None:
            groups["average"] = collect_tensors(self.average.module)
        counters = {name: getattr(self, name) for name in _COUNTERS}
        counters["history"] = [list(epoch) for epoch in self.history]
        tensors = {f"{group}.{k}": v for group, of in groups.items() for k, v in of.items()}
        body = {k: v.detach().cpu().contiguous() for k, v in sorted(tensors.items())}
        digest = _digest(body, counters, identity)
        about = {"counters": json.dumps(counters), "identity": identity, "sha256": digest}
        atomic.write_bytes(path, to_safetensors(body, about))

    def load(self, path: Path, identity: str) -> None:
        """Go on from what `save` wrote. Raises `CheckpointError` for a foreign or corrupt file."""
        tensors = read_tensors(path)
        with safe_open(find_plain_path(path), framework="pt") as file:
            about = file.metadata() or {}
        try:
            counters = json.loads(about["counters"])
        except (ValueError, KeyError):
            raise CheckpointError("is no state of a fit", file=path) from None
        own = {"identity": identity, "sha256": _digest(tensors, counters, identity)}
        if {name: about.get(name) for name in own} != own:
            raise CheckpointError("is the state of another fit, or corrupt", file=path)
        groups: dict[str, dict[str, Tensor]] = defaultdict(dict)
        for name, tensor in tensors.items():
            group, _, rest = name.partition(".")
            groups[group][rest] = tensor
        network = self.lesson.network
        fill_module(network, groups["now"])
        set_moments(self.optimizer, network, groups["adam"])
        self.best = {k: v.to(network.device) for k, v in groups["best"].items()}
        for name in _COUNTERS:
            setattr(self, name, counters[name])
        if self.average is not None:
            fill_module(self.average.module, groups["average"])
            self.average.updates = self.step
        self.history = [Epoch(*row) for row in counters["history"]]


def _digest(tensors: dict[str, Tensor], counters: dict[str, Any], identity: str) -> str:
    found = hashlib.sha256(f"{identity}{json.dumps(counters)}".encode())
    for name in sorted(tensors):
        found.update(name.encode())
        found.update(tensors[name].detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()


class WorkClock:
    """Counts seconds of work from now on, on top of `spent` ones; `device` is a device's type."""

    def __init__(self, spent: float = 0.0, device: str = "cpu") -> None:
        self._spent, self._on_cpu = spent, device == "cpu"
        self._wall, self._cpu = time.monotonic(), time.process_time()

    @property
    def seconds(self) -> float:
        """Seconds of work so far."""
        wall = time.monotonic() - self._wall
        if self._on_cpu:
            wall = min(wall, time.process_time() - self._cpu)
        return self._spent + wall
