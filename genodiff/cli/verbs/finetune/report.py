"""Write RESULTS.md and report.html of a sweep again."""

import logging
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from genodiff.cli.common import Common, Force
from genodiff.errors import DataError
from genodiff.io.target import check_target
from genodiff.reports.benchmark import PAGE, RESULTS, write_benchmark

_log = logging.getLogger("genodiff")


def report(
    out: Annotated[Path, Parameter(help="Folder of a sweep.")],
    *,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Write both files from `OUT/results.jsonl`."""
    common.apply()
    if not (out / "results.jsonl").exists():
        raise DataError("holds no results.jsonl", file=out, fix="give the folder of a sweep")
    for name in (RESULTS, PAGE):
        check_target(out / name, force=force)
    for path in write_benchmark(out):
        _log.info("%s", path)
