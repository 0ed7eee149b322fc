"""`genodiff checkpoint`: is a run folder or checkpoint whole, sound and ours?"""

import json as jsonlib
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from genodiff.train.checkpoint import check as judge

app = App(name="checkpoint", help="Check a run folder or checkpoint.")


@app.command
def check(
    path: Annotated[Path, Parameter(help="A run folder or a checkpoint folder.")],
    /,
    *,
    json: Annotated[bool, Parameter(negative="", help="One JSON object on stdout.")] = False,
) -> None:
    """Read everything in a run folder or checkpoint, judge it, and write nothing. Exit code 4 where it is not sound."""
    found = judge(path)
    if json:
        print(jsonlib.dumps(found, indent=2))
    else:
        steps = ", ".join(str(step) for step in found["checkpoints"]) or "none"
        print(
            f"{path}: sound; model of step {found['step']} ({found['digest']}), checkpoints: {steps}", file=sys.stderr
        )
