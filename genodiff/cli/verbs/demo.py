"""The embedded default end to end on a CPU in minutes: train, evaluate, sample, report."""

import json as json_module
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from genodiff.api.demo import MINUTES, judge_demo
from genodiff.api.demo import demo as run_demo
from genodiff.cli.common import OUTPUT, Common, Force


def demo(
    *,
    out: Annotated[
        Path, OUTPUT, Parameter(help="Run folder; the same command again goes on there.")
    ] = Path("runs/demo"),
    minutes: Annotated[
        float, Parameter(help="Limit of the whole, where the machine is slow: each part does less.")
    ] = MINUTES,
    json: Annotated[
        bool, Parameter(negative="", help="One JSON object on stdout in place of the summary.")
    ] = False,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Train on the embedded toy genome, evaluate, sample to FASTA and write report.html."""
    common.prepare()
    outcome = run_demo(
        out,
        minutes=minutes,
        seed=common.seed,
        device=common.device,
        offline=common.offline,
        force=force,
    )
    print(json_module.dumps(outcome.json()) if json else format_outcome(outcome))
    judge_demo(outcome)


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
