"""Bits per base with its confidence interval, beside Markov baselines.

The run may be another user's: then RUN/eval.json is left out, with a line, or goes to --out.
"""

import logging
from typing import Any

from rich.console import Console
from rich.table import Table

from genodiff.api.evaluate import evaluate
from genodiff.cli.evaluation_tables import draw_suite, draw_tables
from genodiff.cli.request_flags import make_verb
from genodiff.domain import DOMAINS
from genodiff.io.progress import format_duration

_log = logging.getLogger("genodiff")
_NARROWEST = 110  # columns where stdout is no terminal


def _show(asked: Any, found: dict[str, Any]) -> None:
    if asked.plan:
        _print_plan(found)
    elif asked.is_shard:
        _log.info("%s: draws of %s windows", asked.out, f"{found['windows']:,}")
    elif "suite" in found:
        _print([draw_suite(list(found["suite"].values()))])
    else:
        _print(draw_tables(found.get("domain", "dna"), found))


def _print(tables: list[Table]) -> None:
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, _NARROWEST)
    console.print(*tables)


def _print_plan(found: dict[str, Any]) -> None:
    domain = DOMAINS[found["domain"]]
    print(
        f"model    {found['parameters']:,} parameters, checkpoint {found['checkpoint']}, "
        f"{found['alphabet']}"
    )
    print(
        f"windows  {found['windows']:,} of {found['windows_total']:,} of the split "
        f"{found['split']}, {found['repeats']} masks each"
    )
    print(f"{domain.units + ' ':<8} at most {found['tokens']:,} through the network")
    lines = found["seconds_of_baselines"]
    print(
        f"time     about {format_duration(found['seconds'])}"
        + ("" if lines is None else f", and {format_duration(lines)} to count the baselines")
    )
    if found["memory"] is not None:
        kept = found["memory"]
        print(
            f"memory   {kept['bases']:,} bases of the split {kept['split']}, {kept['folder']}; the "
            "time is with it"
        )
    print(f"files    {', '.join(found['files'])}")


eval = make_verb(evaluate, show=_show)
