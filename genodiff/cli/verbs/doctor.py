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

from genodiff.cli.common import Common
from genodiff.errors import MachineError, printable
from genodiff.studies.doctor import Check, check_machine, report

_COLOUR = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(
    *,
    json: Annotated[bool, Parameter(negative="", help="Print one JSON object on stdout.")] = False,
    common: Common = Common(),
) -> None:
    """Check what works on this machine, and say how to repair the rest."""
    checks, scan = check_machine(offline=common.offline), None
    try:
        common.apply()
        from genodiff.studies import selftest

        more, scan = selftest.check_torch()
        checks += more
    except ImportError as fault:
        checks.append(
            Check(
                "torch",
                "fail",
                f"cannot be imported: {printable(fault, 160)}",
                "install genodiff again in a new environment",
            )
        )
    except MachineError as fault:
        checks.append(Check("device", "fail", fault.what, fault.fix or ""))
    if json:
        print(json_module.dumps(report(checks, scan), indent=1))
    else:
        _print(checks)
    failed = [c.name for c in checks if c.status == "fail"]
    if failed:
        raise MachineError(
            f"genodiff cannot run well here: {', '.join(failed)}",
            fix="do what `genodiff doctor` says after each ->",
        )


def _print(checks: list[Check]) -> None:
    """Print a table on a terminal, plain lines in a pipe; no text is read as rich markup."""
    if not sys.stdout.isatty():
        for c in checks:
            print(
                f"{c.status:4}  {c.name:14}  {c.detail}" + (f"\n      -> {c.fix}" if c.fix else "")
            )
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for c in checks:
        table.add_row(Text(c.status, style=_COLOUR[c.status]), Text(c.name), Text(c.detail))
        if c.fix:
            table.add_row("", "", Text(f"-> {c.fix}"))
    Console(highlight=False).print(table)
