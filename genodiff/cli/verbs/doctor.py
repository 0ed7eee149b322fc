"""`genodiff doctor`: what works on this machine.

The exit code is 5 if something that is needed does not work.
"""

import json as json_module
import sys
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from genodiff.api.doctor import doctor as doctor_of_machine
from genodiff.cli.common import Common
from genodiff.errors import MachineError

_COLOUR = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(
    *,
    json: Annotated[bool, Parameter(negative="", help="Print one JSON object on stdout.")] = False,
    common: Common = Common(),
) -> None:
    """Check what works on this machine, and say how to repair the rest."""
    common.prepare()
    found = doctor_of_machine(device=common.device, offline=common.offline)
    if json:
        print(json_module.dumps(found, indent=1))
    else:
        _print(found["checks"])
    failed = [check["name"] for check in found["checks"] if check["status"] == "fail"]
    if failed:
        raise MachineError(
            f"genodiff cannot run well here: {', '.join(failed)}",
            fix="do what `genodiff doctor` says after each ->",
        )


def _print(checks: list[dict[str, str]]) -> None:
    """Print a table on a terminal, plain lines in a pipe; no text is read as rich markup."""
    if not sys.stdout.isatty():
        for c in checks:
            print(f"{c['status']:4}  {c['name']:14}  {c['detail']}")
            if c["fix"]:
                print(f"      -> {c['fix']}")
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for c in checks:
        table.add_row(
            Text(c["status"], style=_COLOUR[c["status"]]), Text(c["name"]), Text(c["detail"])
        )
        if c["fix"]:
            table.add_row("", "", Text(f"-> {c['fix']}"))
    Console(highlight=False).print(table)
