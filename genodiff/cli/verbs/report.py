"""Write a run's report.html again."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from genodiff.api.report import report as write_report
from genodiff.cli.common import OUTPUT, Common, Force, ModelPath


def report(
    run: ModelPath,
    *,
    out: Annotated[
        Path | None, OUTPUT, Parameter(help="HTML file to write (default: RUN/report.html).")
    ] = None,
    samples: Annotated[
        Path | None,
        Parameter(
            help="Samples to set beside real sequence, in place of the run's own; the page is then "
            "SAMPLES.html."
        ),
    ] = None,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Write the page from what the run folder holds, and print its path."""
    common.prepare()
    print(write_report(run, out=out, samples=samples, force=force))
