"""Write a run's report.html again."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from genodiff.cli.common import Common
from genodiff.reports.html import write_report


def report(
    run: Annotated[Path, Parameter(help="Run folder.")],
    /,
    *,
    out: Annotated[
        Path | None, Parameter(help="HTML file to write (default: RUN/report.html).")
    ] = None,
    common: Common = Common(),
) -> None:
    """Write the page from what the run folder holds, and print its path."""
    common.apply()
    print(write_report(run, out))
