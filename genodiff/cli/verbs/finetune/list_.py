"""The suites, or the tasks of one suite."""

import json as json_module
import sys
from typing import Annotated

from cyclopts import Parameter

from genodiff.api.labelled_data import list_suites, list_tasks


def list_(
    suite: Annotated[str | None, Parameter(help="One suite; without it all suites.")] = None,
    /,
    *,
    json: Annotated[bool, Parameter(negative="", help="One JSON object per line.")] = False,
) -> None:
    """Print one line per suite, or per task."""
    if suite is None:
        for row in list_suites():
            line = f"{row['suite']:<20} {row['tasks']:>3} tasks  {row['description']}"
            sys.stdout.write((json_module.dumps(row) if json else line) + "\n")
        return
    for task in list_tasks(suite):
        unit = "bases" if task["domain"] == "dna" else "tokens"
        n = len(task["classes"])
        classes = " / ".join(task["classes"]) if n < 5 else f"{n} classes"
        line = (
            f"{task['name']:<34} {task['kind']:<11} {classes:<36} {task['metrics'][0]:<9} ≤ "
            f"{task['max_length']:,} {unit}  {task['note']}"
        )
        row_text = json_module.dumps(task, separators=(",", ":"), ensure_ascii=False)
        sys.stdout.write((row_text if json else line.rstrip()) + "\n")
