"""The embedded default end to end on a CPU in minutes: train, evaluate, sample, report."""

import json as json_module
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from genodiff.cli.common import OUTPUT, Common, Force
from genodiff.errors import UsageError
from genodiff.io.target import check_target
from genodiff.runs.folder import check_run_folder, set_foreign_files_aside
from genodiff.studies.demo import MINUTES, DemoResult, config, judge, run_demo


def demo(
    *,
    out: Annotated[
        Path, OUTPUT, Parameter(help="Run folder; the same command again goes on there.")
    ] = Path("runs/demo"),
    minutes: Annotated[
        float, Parameter(help="Stop training after this long, where the machine is slow.")
    ] = MINUTES,
    json: Annotated[
        bool, Parameter(negative="", help="One JSON object on stdout in place of the summary.")
    ] = False,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Train on the embedded toy genome, evaluate, sample to FASTA and write report.html."""
    if not minutes > 0:
        raise UsageError(
            f"--minutes {minutes} is not above 0", fix="give a time in minutes, such as 3"
        )
    check_run_folder(out, force=force)
    for name in ("samples.fa", "samples.fa.json", "report.html"):
        check_target(out / name, force=force)
    device = common.apply()
    if force:
        set_foreign_files_aside(out)
    outcome = run_demo(
        out,
        config(seed=common.seed, minutes=minutes),
        device=device,
        offline=common.offline,
        argv=sys.argv,
    )
    print(json_module.dumps(outcome.json()) if json else summary(outcome))
    judge(outcome)


def summary(outcome: DemoResult) -> str:
    """The demo's three numbers, and where everything is."""
    e = outcome.evaluation
    markov = e.markov()
    name, bits = e.best_markov() or ("Markov", float("nan"))
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
