"""Write RESULTS.md and report.html of a sweep again."""

import logging
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from genodiff.cli.common import Common
from genodiff.errors import DataError
from genodiff.reports.benchmark import write_benchmark

_log = logging.getLogger("genodiff")


def report(
    out: Annotated[Path, Parameter(help="Folder of a sweep.")],
    *,
    common: Common = Common(),
) -> None:
    """Write both files from `OUT/results.jsonl`."""
    common.apply()
    if not (out / "results.jsonl").exists():
        raise DataError("holds no results.jsonl", file=out, fix="give the folder of a sweep")
    for path in write_benchmark(out):
        _log.info("%s", path)
