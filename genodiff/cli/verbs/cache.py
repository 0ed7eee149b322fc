"""What genodiff keeps to save time: list it, and remove it.

All of it can be made or fetched again. The folder is the user's cache folder, or GENODIFF_CACHE.
Runs, fits and results never lie there.
"""

import json as json_module
import logging
from typing import Annotated, Any

from cyclopts import App, Parameter

from genodiff.api.cache import clean_cache, list_cache
from genodiff.cli.common import Common, Json, Plan

cache = App(name="cache")
_log = logging.getLogger("genodiff")


@cache.default
@cache.command(name="list")
def list_(*, json: Json = False, common: Common = Common()) -> None:
    """What lies there: of each kind how many things, their size and last use."""
    common.prepare()
    found = list_cache()
    if json:
        print(json_module.dumps(found, indent=2))
        return
    _print(found["kinds"], found["bytes"])
    _log.info("%s; what is old goes with: genodiff cache clean --older-than 30", found["folder"])
    if found["foreign"]:
        what = "%d paths there are not of genodiff, are not counted and never removed: %s"
        _log.info(what, len(found["foreign"]), ", ".join(found["foreign"][:3]))


@cache.command
def clean(
    *,
    older_than: Annotated[
        float | None, Parameter(help="Days: what has not been used for so long.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        Parameter(
            help="A kind that `cache list` names; one or several.",
            negative="",
            consume_multiple=True,
        ),
    ] = None,
    all: Annotated[bool, Parameter(negative="", help="Every kind, of every age.")] = False,
    plan: Plan = False,
    json: Json = False,
    common: Common = Common(),
) -> None:
    """Remove what is chosen; what a running process makes or has open stays."""
    common.prepare()
    told = clean_cache(kinds=kind or (), older_than=older_than, everything=all, plan=plan)
    if json:
        print(json_module.dumps(told, indent=2))
        return
    _print(told["removed"], told["bytes"])
    freed = "would free" if plan else "freed"
    _log.info("%s: %s %s bytes", told["folder"], freed, f"{told['bytes']:,}")


def _print(rows: list[dict[str, Any]], size: int) -> None:
    """The kinds as lines: name, number, size, day of the last use, what it is."""
    for row in rows:
        day = row["last_used"][:10]
        print(
            f"{row['kind']:<13} {row['number']:>7,} {row['bytes'] / 1e6:>10,.1f} MB  {day}  "
            f"{row['about']}"
        )
    print(f"{'in all':<13} {sum(row['number'] for row in rows):>7,} {size / 1e6:>10,.1f} MB")
