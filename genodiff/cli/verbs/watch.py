"""Watch training runs: the loss, the pace and the time to go, live in the terminal."""

import json as json_module
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from genodiff.api.watch import watch as watch_runs
from genodiff.cli.common import Common, Json


def watch(
    *runs: Annotated[Path, Parameter(name="RUN", help="Run folders.")],
    interval: Annotated[float, Parameter(help="Seconds between two looks.")] = 2.0,
    once: Annotated[
        bool, Parameter(negative="", help="Look once; so it is where stdout is no terminal.")
    ] = False,
    json: Json = False,
    common: Common = Common(),
) -> None:
    """Show how runs stand until none is in training; Ctrl-C leaves them alone."""
    common.prepare()
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    looks = watch_runs(*runs, interval=interval)
    if json:
        found = next(looks)
        print(
            json_module.dumps([one._asdict() | {"state": one.state} for one in found], default=str)
        )
        return
    console = Console()
    if once or not console.is_terminal:
        console.print(*(one.describe() for one in next(looks)), sep="\n", markup=False)
        return
    with Live(console=console, auto_refresh=False) as live:
        for found in looks:
            live.update(Text("\n".join(one.describe() for one in found)), refresh=True)
