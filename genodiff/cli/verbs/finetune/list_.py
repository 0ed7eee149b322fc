"""The suites, or the tasks of one suite."""

import json as json_module
import sys
from typing import Annotated

from cyclopts import Parameter

from genodiff.tasks.suite import load_suite, suite_names


def list_(
    suite: Annotated[str | None, Parameter(help="One suite; without it all suites.")] = None,
    /,
    *,
    json: Annotated[bool, Parameter(negative="", help="One JSON object per line.")] = False,
) -> None:
    """Print one line per suite, or per task."""
    if suite is None:
        for name in suite_names():
            found = load_suite(name)
            row = {"suite": name, "tasks": len(found.tasks), "description": found.description}
            line = f"{name:<20} {len(found.tasks):>3} tasks  {found.description}"
            sys.stdout.write((json_module.dumps(row) if json else line) + "\n")
        return
    for task in load_suite(suite).tasks:
        unit = "bases" if task.domain == "dna" else "tokens"
        n = len(task.classes)
        classes = " / ".join(task.classes) if n < 5 else f"{n} classes"
        line = (
            f"{task.name:<34} {task.kind:<11} {classes:<36} {task.metrics[0]:<9} ≤ "
            f"{task.max_length:,} {unit}  {task.note}"
        )
        sys.stdout.write((task.model_dump_json() if json else line.rstrip()) + "\n")
