"""The memory of a run's training genome."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from genodiff.errors import UsageError
from genodiff.jobs.machine import choose_device
from genodiff.kernels.defaults import own_defaults
from genodiff.runs.run_paths import check_may_write, locate


@own_defaults()
def fit_memory(
    run: str | Path,
    *,
    windows: int = 60,
    draws: int = 3,
    seed: int = 1,
    device: str = "auto",
    offline: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Fit the eleven numbers of a run's memory on its valid split, and keep them with the run.

    They say how often a window copies the training genome, and how faithfully; the defaults are of
    yeast. `windows` of each class (unique, touched, repeat) are drawn, with `draws` masks each.
    Returns what is written to RUN/memory.json: numbers, fingerprint of the memory, and bits per
    base of those windows without the memory, with the numbers of before, and with the new ones.
    `memory="on"` takes them from then on. With `force` a file there that genodiff did not write is
    replaced. Raises `UsageError`, `DataError`, `CheckpointError`.
    """
    for name, value in (("windows", windows), ("draws", draws)):
        if value < 1:
            raise UsageError(f"--{name} {value} is below 1", fix="give 1 or more")
    here = locate(run)
    found = choose_device(device)
    from genodiff.hub.source import is_published
    from genodiff.io.target import check_target
    from genodiff.runs.fitted_numbers import FILE, is_fitted
    from genodiff.runs.memory_fit import fit_memory as fit
    from genodiff.runs.model import load_model

    if is_published(here):
        raise UsageError(f"{here} is published, and stays as it is", fix="give a run folder")
    model = load_model(here, found)
    check_may_write(model.run, "give the run that it was made of")
    check_target(model.run / FILE, force=force, known=is_fitted)
    return fit(model, windows=windows, draws=draws, seed=seed, offline=offline)
