"""Where a run's curves may go, and whether the packages for it are here. No torch."""

from collections.abc import Sequence
from importlib import import_module

from genodiff.errors import MachineError, UsageError, did_you_mean

LOGGERS = ("csv", "tensorboard", "wandb")
"""`csv` is metrics.csv, which is always written."""


def check_loggers(names: Sequence[str]) -> None:
    """Raises `UsageError` for an unknown logger, `MachineError` where its package is missing."""
    for name in names:
        if name not in LOGGERS:
            raise UsageError(f"no logger '{name}'; {did_you_mean(name, LOGGERS)}")
        try:
            import_module(name)
        except ImportError:
            raise MachineError(
                f"--logger {name} needs the package {name}, which is not installed",
                fix="pip install 'genodiff[loggers]'",
            ) from None
