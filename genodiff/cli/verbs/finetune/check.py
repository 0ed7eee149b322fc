"""Read a data set from end to end and judge it; exit 3 with one line where it is not sound.

Leaks between train and test are warned of. Nothing is written.
"""

import json as json_module
import sys
from typing import Annotated

from cyclopts import Parameter

from genodiff.api.labelled_data import audit, list_warnings
from genodiff.cli.common import Common
from genodiff.cli.labelled_data import DATASET, DataFlags
from genodiff.errors import printable


def check(
    dataset: Annotated[str, Parameter(help=DATASET)],
    /,
    *,
    flags: DataFlags = DataFlags(),
    json: Annotated[bool, Parameter(negative="", help="One JSON object on stdout.")] = False,
    common: Common = Common(),
) -> None:
    """Print one line, or one JSON object, about a data set that is sound."""
    found = audit(dataset, **flags.given())
    warnings = list_warnings(found)
    if not common.quiet:
        for warning in warnings:
            print(f"genodiff: warning: {printable(dataset)}: {warning}", file=sys.stderr)
    if json:
        keep = ("suite", "task", "split", "classes", "counts", "lengths", "notes")
        row = {key: found[key] for key in keep} | {"warnings": warnings}
        sys.stdout.write(json_module.dumps(row) + "\n")
    else:
        counts = "; ".join(
            f"{part} {' + '.join(f'{n:,}' for n in of.values())}"
            for part, of in found["counts"].items()
        )
        spans = [of for of in found["lengths"].values()]
        unit = "bases" if found["domain"] == "dna" else "bytes"
        bases = f"{min(s[0] for s in spans):,} to {max(s[2] for s in spans):,} {unit}"
        of = f"classes {', '.join(found['classes'])}" if found["classes"] else "values"
        sys.stdout.write(f"{printable(dataset)}: sound; {of}; {counts}; {bases}\n")
