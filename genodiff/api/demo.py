"""The embedded default from end to end: `genodiff.demo`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from annotated_types import Gt

from genodiff.io.target import check_target
from genodiff.jobs.machine import choose_device
from genodiff.jobs.options import OUT, Device, Force, Offline, Seed
from genodiff.jobs.request import Option, Request
from genodiff.jobs.verbs import verb

if TYPE_CHECKING:
    from genodiff.studies.demo import DemoResult

MINUTES = 12.0
"""Of the whole: far more than it takes, unless the machine is far slower than a laptop."""


@verb("demo", help="Run the demo on a CPU in minutes: train, evaluate, sample, report.")
@dataclass(frozen=True, kw_only=True)
class DemoRequest(Request["DemoResult"]):
    """Train on the toy genome, evaluate, sample and write a report into the run folder `out`.

    `minutes` limits the total time: training stops after 70 % of it, and evaluation and sampling
    are cut to the rest. A stage already done with the same weights is skipped. `force` sets other
    files in `out` aside. Raises `UsageError`, `MachineError`, and the errors of training.
    """

    json_help: ClassVar[str] = "One JSON object on stdout in place of the summary."
    catches_stop: ClassVar[bool] = False

    out: Annotated[Path | str, Option("Run folder; the same command resumes there.", OUT)] = field(
        default="runs/demo", kw_only=False
    )
    minutes: Annotated[
        float, Gt(0), Option("Limit of the total time, for slow machines: each part does less.")
    ] = MINUTES
    seed: Seed = 1
    device: Device = "auto"
    offline: Offline = False
    force: Force = False

    def answer(self, *given: Any) -> DemoResult:
        out = Path(self.out)
        from genodiff.runs.folder import check_run_folder, set_foreign_files_aside

        check_run_folder(out, force=self.force)
        for name in ("samples.fa", "samples.fa.json", "report.html"):
            check_target(out / name, force=self.force)
        device = choose_device(self.device)
        from genodiff.studies.demo import make_demo_config, run_demo

        if self.force:
            set_foreign_files_aside(out)
        settings = make_demo_config(seed=self.seed, minutes=self.minutes)
        return run_demo(out, settings, device=device, offline=self.offline, argv=sys.argv)

    def list_rows(self, answer: Any) -> list[Any]:
        return [answer.json()]

    def show(self, answer: Any) -> None:
        print(format_outcome(answer))

    def conclude(self, answer: Any) -> str:
        """Raises `GenodiffError` where it did not learn, or is below what no model can be."""
        from genodiff.studies.demo import judge

        judge(answer)
        return ""


def format_outcome(outcome: Any) -> str:
    """The demo's three numbers, and where everything is."""
    e = outcome.evaluation
    markov = e.markov()
    best = e.best_line()
    name, bits = ("Markov", float("nan")) if best is None else (best.kind.title, best.bits)
    low, high = e.ci95_bits or (e.bits_per_base, e.bits_per_base)
    lines = [
        f"bits per base on {e.tokens:,} held-out bases, lower is better",
        f"  order 0 (composition)   {markov[0]:.3f}",
        f"  {name:22}  {bits:.3f}",
        f"  this model, at most     {e.bits_per_base:.3f}   95 % interval {low:.3f} to {high:.3f}",
        f"  the source itself       {e.source_bits:.3f}   no model can be lower on average",
        f"  gap closed              {outcome.closed:.0%}",
        f"samples   {outcome.run / 'samples.fa'} ({outcome.samples} sequences, "
        f"{outcome.sampled_bases:,} bases)",
        f"report    {outcome.run / 'report.html'}",
        f"time      {outcome.seconds:.0f} s",
    ]
    if outcome.steps < outcome.max_steps:
        lines.append(
            f"note      stopped at step {outcome.steps} of {outcome.max_steps}: this machine is "
            f"slow (--minutes)"
        )
    return "\n".join(lines)
