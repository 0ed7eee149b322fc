"""Write a run's report.html again."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from genodiff.cli.common import Common, Force
from genodiff.io.target import check_target
from genodiff.reports.html import write_report


def report(
    run: Annotated[Path, Parameter(help="Run folder.")],
    /,
    *,
    out: Annotated[
        Path | None, Parameter(help="HTML file to write (default: RUN/report.html).")
    ] = None,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Write the page from what the run folder holds, and print its path."""
    check_target(run / "report.html" if out is None else out, force=force)
    common.apply()
    print(write_report(run, out))
