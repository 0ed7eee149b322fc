"""A run's rows, sent also to TensorBoard and Weights & Biases; `metrics.csv` is always written.

Files of TensorBoard are in RUN/tensorboard, those of Weights & Biases in RUN/wandb. A run that goes
on writes into the same folder, and keeps its id (RUN/wandb.json).
"""

import json
import logging
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from lightning.pytorch.loggers import Logger, TensorBoardLogger, WandbLogger

from genodiff.io import atomic
from genodiff.runs.config import RunConfig

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
