"""The embedded default from end to end: `genodiff.demo`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from genodiff.errors import UsageError
from genodiff.io.target import check_target
from genodiff.jobs.machine import choose_device
from genodiff.kernels.defaults import own_defaults

if TYPE_CHECKING:
    from genodiff.studies.demo import DemoResult

MINUTES = 12.0
"""Of the whole: far more than it takes, unless the machine is far slower than a laptop."""


@own_defaults()
def demo(
    out: str | Path = "runs/demo",
    *,
    minutes: float = MINUTES,
    seed: int = 1,
    device: str = "auto",
    offline: bool = False,
    force: bool = False,
) -> DemoResult:
    """Train on the toy genome, evaluate, sample and write a report into the run folder `out`.

    `minutes` is a limit of the whole: training stops after 70 % of it, and what is scored and
    sampled is cut to the rest. A stage that was done with the same weights is not done again.
    `force` sets foreign files in `out` aside. `judge_demo` says whether the result is what it must
    be. Raises `UsageError`, `MachineError`, and what training raises.
    """
    if not minutes > 0:
        raise UsageError(
            f"--minutes {minutes} is not above 0", fix="give a time in minutes, such as 3"
        )
    out = Path(out)
    from genodiff.runs.folder import check_run_folder, set_foreign_files_aside

    check_run_folder(out, force=force)
    for name in ("samples.fa", "samples.fa.json", "report.html"):
        check_target(out / name, force=force)
    device = choose_device(device)
    from genodiff.studies.demo import make_demo_config, run_demo

    if force:
        set_foreign_files_aside(out)
    settings = make_demo_config(seed=seed, minutes=minutes)
    return run_demo(out, settings, device=device, offline=offline, argv=sys.argv)


def judge_demo(outcome: DemoResult) -> None:
    """Raises `GenodiffError` where the demo did not learn, or is below what no model can be."""
    from genodiff.studies.demo import judge

    judge(outcome)
