"""What the test part gives away: duplicates of train, overlaps, and what needs no sequence.

SUITE/all audits every task of a suite. For Genomic Benchmarks coordinates are enough. Nothing is
written.
"""

import json as json_module
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from genodiff.cli.common import Common
from genodiff.cli.labelled_data import DATASET, DataFlags, open_dataset
from genodiff.tasks.audit import audit as audit_parts
from genodiff.tasks.audit import audit_lines
from genodiff.tasks.suite import suite_names, task_names


def audit(
    dataset: Annotated[str, Parameter(help=DATASET)],
    /,
    *,
    flags: DataFlags = DataFlags(),
    json: Annotated[bool, Parameter(negative="", help="One JSON object on stdout.")] = False,
    common: Common = Common(),
) -> None:
    """Print what an audit finds, as lines or as one JSON object per task."""
    for name in _list_datasets(dataset):
        found = audit_parts(open_dataset(name, flags))
        for line in [json_module.dumps(found)] if json else audit_lines(found):
            sys.stdout.write(line + "\n")


def _list_datasets(dataset: str) -> list[str]:
    """SUITE/all as the suite's tasks; anything else as it is."""
    suite, _, task = dataset.partition("/")
    if task == "all" and suite in suite_names() and not Path(dataset).exists():
        return [f"{suite}/{name}" for name in task_names(suite)]
    return [dataset]
