"""Write RESULTS.md and report.html of a sweep again."""

import logging
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from genodiff.api.sweep import report_sweep
from genodiff.cli.common import Common, Force, Margin

_log = logging.getLogger("genodiff")


def report(
    out: Annotated[Path, Parameter(help="Folder of a sweep.")],
    *,
    margin: Margin = None,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Write both files from `OUT/results.jsonl`."""
    common.prepare()
    for path in report_sweep(out, margin=margin, force=force):
        _log.info("%s", path)
