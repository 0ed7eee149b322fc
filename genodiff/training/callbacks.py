"""What happens at the end of every optimiser step, in this order and nowhere else:

averaged weights → plan → validation → metrics row → checkpoint → stop. Everything up to the
checkpoint is a function of (configuration, step), so that a run that was killed anywhere repeats it
exactly.

A run's rows, sent also to TensorBoard and Weights & Biases; `metrics.csv` is always written.

Files of TensorBoard are in RUN/tensorboard, those of Weights & Biases in RUN/wandb. A run that goes
on writes into the same folder, and keeps its id (RUN/wandb.json).
"""

import json
import logging
import math
import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import lightning.pytorch as pl
import torch
from lightning.pytorch.loggers import Logger, TensorBoardLogger, WandbLogger
from torch.optim import AdamW

from genodiff.errors import GenodiffError, MachineError
from genodiff.io import atomic
from genodiff.io.progress import ProgressDisplay, format_duration
from genodiff.runs.checkpoint import State
from genodiff.runs.config import RunConfig
from genodiff.runs.folder import RunFolder
from genodiff.runs.model import collect_tensors
from genodiff.training.horizon import Plan
from genodiff.training.module import Pretraining
from genodiff.training.optimizer import (
    WeightAverage,
    learning_rate,
    read_moments,
    set_moments,
)
from genodiff.training.ranks import gather_all, is_sharded
from genodiff.training.signals import Signals

_log = logging.getLogger("genodiff")

WANDB_RUN = "wandb.json"
CURVES = ("loss_bits", "valid_bits", "valid_ci", "lr", "grad_norm", "tokens_per_s", "tokens")
"""Columns of `metrics.csv` that are sent, under the same names."""


class RunLoggers:
    """The loggers of one session of a run."""

    def __init__(
        self, names: Sequence[str], run: Path, config: RunConfig, step: int, *, offline: bool
    ) -> None:
        self._loggers = [_OPENERS[name](run, step, offline) for name in names if name != "csv"]
        for logger in self._loggers:
            logger.log_hyperparams(config.model_dump(mode="json"))

    def send(self, row: Mapping[str, Any]) -> None:
        """Send a row of `metrics.csv`; empty values are left out."""
        values = {name: float(row[name]) for name in CURVES if row[name] != ""}
        for logger in self._loggers:
            logger.log_metrics(values, step=int(row["step"]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *fault: object) -> None:
        """Write what is still in memory, and end the session."""
        status = "success" if kind is None else "failed"
        for logger in self._loggers:
            logger.save()
            logger.finalize(status)
            if isinstance(logger, WandbLogger):
                logger.experiment.finish(exit_code=int(kind is not None))


def _open_tensorboard(run: Path, step: int, offline: bool) -> Logger:
    _log.info("curves: tensorboard --logdir %s", run / "tensorboard")
    # Rows after the checkpoint that the run goes on from are written again.
    return TensorBoardLogger(
        run, name="tensorboard", version="", default_hp_metric=False, purge_step=step + 1
    )


def _open_wandb(run: Path, step: int, offline: bool) -> Logger:
    there = run / WANDB_RUN
    if not there.is_file():
        atomic.write_json(there, {"id": uuid.uuid4().hex[:8]})
    id_ = json.loads(there.read_text(encoding="utf-8"))["id"]
    # Nothing is sent unless that is asked for.
    is_offline = offline or os.environ.get("WANDB_MODE", "offline") != "online"
    if is_offline:
        _log.info("Weights & Biases is offline; send the run later: wandb sync %s/wandb/*", run)
    os.environ.setdefault("WANDB_SILENT", "true")
    return WandbLogger(
        project=os.environ.get("WANDB_PROJECT", "genodiff"),
        name=run.name,
        save_dir=run,
        id=id_,
        offline=is_offline,
        resume="allow",
    )


_OPENERS: dict[str, Callable[[Path, int, bool], Logger]] = {
    "tensorboard": _open_tensorboard,
    "wandb": _open_wandb,
}


@dataclass
class Counters:
    """How far a run is."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    skipped: int = 0
    rewound: int = 0
    """Times that the run went back from a spike."""
    passed: int = 0
    """Batches that it went past: step s sees batch s + `passed`."""


Judge = Callable[..., tuple[float, float]]
"""`validation.validate` of a run's windows: (backbone, device) to bits per token and half-width."""


class Boundary(pl.Callback):
    """The step's end. `folder` is None on all ranks but the first: only that one writes."""

    def __init__(
        self,
        config: RunConfig,
        plan: Plan,
        average: WeightAverage,
        judge: Judge | None,
        signals: Signals,
        folder: RunFolder | None,
        counters: Counters,
        state: State | None,
        loggers: RunLoggers | None = None,
    ) -> None:
        self.config, self.plan, self.average, self.judge = config, plan, average, judge
        self.signals, self.folder, self.state = signals, folder, state
        self.counters, self.loggers = counters, loggers
        self.last_valid: tuple[float, float] | None = None
        self.stopped_by: int | None = None
        self.display: ProgressDisplay | None = None
        self.bits: float | None = None
        """Smoothed bits per token, as displayed."""

    def on_fit_start(self, trainer: pl.Trainer, module: Pretraining) -> None:  # type: ignore[override]
        """Put the optimiser back to where the checkpoint had it."""
        self.average.module.to(module.device)
        if self.state is not None:
            optimizer = trainer.optimizers[0]
            assert isinstance(optimizer, AdamW)
            set_moments(optimizer, module.backbone, self.state.tensors)
            module.skipped = self.counters.skipped
            self.state = None

    def on_train_start(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        """Take the signals back from Lightning and start the clock."""
        self.signals.install()
        self.clock = time.perf_counter()
        self.begun = (self.counters.step, self.counters.seconds)
        self.plan.begin(*self.begun)
        if self.folder is not None:
            self.display = ProgressDisplay()

    def on_train_batch_start(  # type: ignore[override]
        self, trainer: pl.Trainer, module: Pretraining, batch: Any, batch_idx: int
    ) -> None:
        """At a step's first micro-batch: its learning rate."""
        if batch_idx % self.config.train.accumulate == 0:
            module.begin_step(self.counters.step)
            step = self.counters.step
            self.rate = learning_rate(step, self.config.optim, self.plan.horizon(step))
            for group in trainer.optimizers[0].param_groups:
                group["lr"] = self.rate

    def on_train_batch_end(  # type: ignore[override]
        self, trainer: pl.Trainer, module: Pretraining, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """At a step's last micro-batch: everything else."""
        if (batch_idx + 1) % self.config.train.accumulate:
            return
        if not module.skip:
            self.average.update(module.backbone)
        now = time.perf_counter()
        took, self.clock = now - self.clock, now
        counters = self.counters
        counters.step += 1
        counters.tokens += int(module.totals[2])
        counters.seconds += took
        counters.skipped = module.skipped
        signal = self._agree(trainer)
        finished = self.plan.finished(counters.step)
        valid = self._validate(module, finished)
        if self.folder is not None:
            self._record(self.folder, module, took, valid)
        if finished or signal or counters.step % self.config.train.checkpoint_every == 0:
            state = self._collect(trainer, module)
            if self.folder is not None and state is not None:
                self._save(self.folder, state, last=finished or bool(signal))
        if finished or signal:
            self.stopped_by = None if finished else signal
            trainer.should_stop = True

    def teardown(self, trainer: pl.Trainer, module: pl.LightningModule, stage: str) -> None:
        """Take the bar away, however the run ended."""
        if self.display is not None:
            self.display.close()

    def _agree(self, trainer: pl.Trainer) -> int:
        """The number of a signal that any rank has caught, or 0.

        The first rank decides the plan, for all ranks.
        """
        if trainer.is_global_zero:
            self.plan.watch(self.counters.step, self.counters.seconds)
        signal = int(self.signals.caught or 0)
        if trainer.world_size > 1:
            self.plan.decisions = trainer.strategy.broadcast(self.plan.decisions)
            caught = torch.tensor(signal, device=trainer.strategy.root_device)
            torch.distributed.all_reduce(caught, torch.distributed.ReduceOp.MAX)
            signal = int(caught)
        return signal

    def _validate(self, module: Pretraining, finished: bool) -> tuple[float, float] | None:
        step = self.counters.step
        if self.judge is None or not (finished or step % self.config.train.validate_every == 0):
            return None
        found = self.judge(self.average.module, device=module.device)
        if not math.isfinite(found[0]):
            what = f"step {step}: the validation bound is not finite"
            raise GenodiffError(what, fix="lower --lr; resume goes back a little")
        self.last_valid = found
        if self.folder is not None:
            unit = self.config.unit
            _log.info("step %d · validation %.4f ± %.4f bits per %s", step, *found, unit)
        return found

    def _record(
        self, folder: RunFolder, module: Pretraining, took: float, valid: tuple[float, float] | None
    ) -> None:
        nats, unweighted, bases, weights = module.totals.tolist()
        step, seconds = self.counters.step, self.counters.seconds
        bits = unweighted / bases / math.log(2) if bases else math.nan
        row = dict(
            step=step,
            tokens=self.counters.tokens,
            seconds=f"{seconds:.3f}",
            loss_bits=f"{bits:.6f}",
            loss_hex=module.loss.hex(),
            grad_norm=f"{module.grad_norm:.6g}",
            lr=f"{self.rate:.6g}",
            valid_bits=f"{valid[0]:.6f}" if valid else "",
            valid_ci=f"{valid[1]:.6f}" if valid else "",
            tokens_per_s=f"{bases / took:.1f}",
            weighted_bits=f"{nats / weights / math.log(2):.6f}" if weights else "",
            skipped=int(module.skip),
        )
        folder.metrics.append(**row)
        if self.loggers is not None:
            self.loggers.send(row)
        if self.display is not None:
            self.bits = bits if self.bits is None else 0.9 * self.bits + 0.1 * bits
            horizon, of, left = self.plan.horizon(step), "", "time to go not known yet"
            if horizon is not None:
                pace = (seconds - self.begun[1]) / (step - self.begun[0])
                of, left = f"/{horizon}", f"{format_duration(pace * (horizon - step))} to go"
            loss = f"loss {self.bits:.4f} bits"
            text = f"step {step}{of} · {loss} · {bases / took:,.0f} tok/s · {left}"
            self.display.show(text, step, horizon)

    def _collect(self, trainer: pl.Trainer, module: Pretraining) -> State | None:
        """What a checkpoint holds, on the rank that writes it; the others give their parts."""
        keep = self.folder is not None
        if not keep and not is_sharded(module.backbone):
            return None
        optimizer = trainer.optimizers[0]
        assert isinstance(optimizer, AdamW)
        raw = {f"weights.{n}": tensor for n, tensor in collect_tensors(module.backbone).items()}
        weights = gather_all(collect_tensors(self.average.module), keep=keep)
        tensors = gather_all(raw | read_moments(optimizer, module.backbone), keep=keep)
        if self.folder is None:
            return None
        counters = asdict(self.counters) | {
            "averaged": self.average.updates + 1,
            "plan": self.plan.values(),
            "recent": list(module.spikes.recent),
            "data": self.folder.data,
            "threads": torch.get_num_threads(),
        }
        return State(self.counters.step, weights, tensors, counters)

    def _save(self, folder: RunFolder, state: State, last: bool) -> None:
        try:
            folder.save(state)
        except MachineError as fault:
            if last:
                raise
            what = "%s; training continues without this checkpoint; the previous one is valid"
            _log.warning(what, fault)
