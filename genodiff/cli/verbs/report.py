"""Write a run's report.html again, or the page of scored variants."""

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
    what: Annotated[
        Path | None,
        Parameter(help="Run folder, or an output of genodiff score (or of genodiff merge)."),
    ] = None,
    *,
    run: OptionalModelPath = None,
    out: Annotated[
        Path | None,
        OUTPUT,
        Parameter(help="HTML file to write (default: RUN/report.html, or SCORES.html)."),
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
    """Write the page of a run, or of scored variants, and print its path.

    Of scores, --model RUN adds logos of REF and ALT, and tests the standard errors.
    """
    common.prepare()
    if what is None and run is None:
        raise UsageError("nothing to report on", fix="give a run folder, or scored variants")
    print(
        write_report(
            what if what is not None else run,  # type: ignore[arg-type]
            out=out,
            samples=samples,
            model=run if what is not None else None,
            fasta=fasta,
            top=top,
            device=common.device,
            force=force,
        )
    )
