"""What the test part gives away: duplicates of train, overlaps, and what needs no sequence.

SUITE/all audits every task of a suite. For Genomic Benchmarks coordinates are enough. Nothing is
written.
"""

import json as json_module
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from genodiff.api.labelled_data import audit as audit_parts
from genodiff.api.labelled_data import audit_lines, list_datasets
from genodiff.cli.common import Common
from genodiff.cli.labelled_data import DATASET, DataFlags


def audit(
    dataset: Annotated[str, Parameter(help=DATASET)],
    /,
    *,
    flags: DataFlags = DataFlags(),
    model: Annotated[
        list[Path] | None,
        Parameter(help="A run: how much of the test part its pretraining saw. Repeatable."),
    ] = None,
    json: Annotated[bool, Parameter(negative="", help="One JSON object on stdout.")] = False,
    common: Common = Common(),
) -> None:
    """Print what an audit finds, as lines or as one JSON object per task."""
    for name in list_datasets(dataset):
        found = audit_parts(name, **flags.given(), model=model or ())
        for line in [json_module.dumps(found)] if json else audit_lines(found):
            sys.stdout.write(line + "\n")
