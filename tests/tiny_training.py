"""Runs of a few thousand weights on the toy genome, for the tests of several rooms."""

import csv
from pathlib import Path
from typing import Any

from genodiff.alphabet import DNA
from genodiff.backbones.backbone import Backbone
from genodiff.diffusion.objective import Objective
from genodiff.runs.config import RunConfig
from genodiff.runs.model import build_backbone, build_diffusion, build_objective
from genodiff.runs.resolve import resolve_config
from genodiff.training.run import RunResult, train

TINY: dict[str, Any] = {
    "recipe": "toy",
    "seq_len": 64,
    "preset": "caduceus-ps-tiny",
    "d_model": 16,
    "n_layer": 1,
    "d_state": 4,
    "batch_size": 4,
    "steps": 6,
    "checkpoint_every": 2,
    "validate_every": 3,
    "validate_windows": 8,
}


def tiny(**changes: Any) -> RunConfig:
    """The tiny configuration with settings changed, by their short names."""
    return resolve_config(TINY | changes)


def build_parts(config: RunConfig) -> tuple[Backbone, Objective]:
    """The network of a configuration, and its objective."""
    return build_backbone(config, DNA), build_objective(config, build_diffusion(config, DNA))


def run_tiny(out: Path, **changes: Any) -> RunResult:
    """Train it into `out`."""
    return train(tiny(**changes), out, argv=["test"])


def read_rows(run: Path) -> list[dict[str, str]]:
    """The rows of a run's metrics.csv."""
    with (run / "metrics.csv").open() as file:
        return list(csv.DictReader(file))


def read_losses(run: Path) -> list[str]:
    """The loss of each step, to the bit."""
    return [row["loss_hex"] for row in read_rows(run)]
