"""Runs side by side on the same bases: finished runs."""

import logging
from pathlib import Path
from typing import Any

from genodiff.api.compare import compare as compare_runs
from genodiff.cli.request_flags import make_verb

_log = logging.getLogger("genodiff")


def _show(asked: Any, found: dict[str, Any]) -> None:
    if asked.plan:
        _print_plan(found)
        return
    folder = Path(found["folder"])
    print((folder / "table.md").read_text(encoding="utf-8").partition("\n<!--")[0])
    _log.info("%s, %s", folder / "table.md", folder / "compare.html")


def _print_plan(found: dict[str, Any]) -> None:
    for one in found["runs"]:
        minutes = f"{one['seconds'] / 60:8.1f} min"
        print(f"{one['name']:28s}  {one['parameters']:>12,} parameters  {minutes}")
    hours = sum(one["seconds"] for one in found["runs"]) / 3600
    size = f"{found['tokens']:,} tokens in {found['windows']:,} windows"
    print(f"in all {hours:.1f} h for {size}; into {found['folder']}")


compare = make_verb(compare_runs, show=_show)
