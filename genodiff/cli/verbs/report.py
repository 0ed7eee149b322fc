"""Write a run's report.html again, several runs side by side, or the page of scored variants."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from genodiff.api.report import report as write_report
from genodiff.cli.common import (
    OUTPUT,
    Common,
    Force,
    OptionalModelPath,
    convert_whole_number,
)
from genodiff.errors import UsageError


def report(
    *what: Annotated[
        Path,
        Parameter(
            name="WHAT",
            help="Run folder, several of them side by side, or an output of genodiff score (or of "
            "genodiff merge).",
        ),
    ],
    run: OptionalModelPath = None,
    out: Annotated[
        Path | None,
        OUTPUT,
        Parameter(
            help="HTML file to write (default: RUN/report.html, SCORES.html, or "
            "report-RUN-RUN.html beside the first run)."
        ),
    ] = None,
    samples: Annotated[
        Path | None,
        Parameter(
            help="Samples to set beside real sequence, in place of the run's own; the page is then "
            "SAMPLES.html."
        ),
    ] = None,
    fasta: Annotated[
        Path | None,
        Parameter(help="Of scores with --model: the genome (default: where it was)."),
    ] = None,
    top: Annotated[
        int,
        Parameter(
            converter=convert_whole_number,
            help="Of scores: how many of the least likely variants are listed.",
        ),
    ] = 20,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Write the page of a run, of several runs or of scored variants, and print its path.

    Of scores, --model RUN adds logos of REF and ALT, and tests the standard errors.
    """
    common.prepare()
    pages = list(what)
    if not pages and run is not None:
        pages = [run]
    if not pages:
        raise UsageError("nothing to report on", fix="give a run folder, or scored variants")
    print(
        write_report(
            *pages,
            out=out,
            samples=samples,
            model=run if what else None,
            fasta=fasta,
            top=top,
            device=common.device,
            force=force,
        )
    )
