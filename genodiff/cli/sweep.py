"""The verbs of a fine-tuning sweep: `genodiff finetune table`, and one of every suite."""

import logging
import sys
from collections.abc import Callable
from typing import Any

from genodiff.api.finetune import finetune
from genodiff.api.sweep import FitFlags, SuiteData, SweepOptions, describe_plan, summarise_rows
from genodiff.cli.request_flags import make_verb

_log = logging.getLogger("genodiff")


def make_sweep_verb(data: type, **fixed: Any) -> Callable[..., None]:
    """The verb whose data are named by the fields of `data`, but those that are `fixed`."""
    parts = (data, SweepOptions, FitFlags)
    return make_verb(finetune, show=_show, rows=_list_rows, parts=parts, fixed=fixed)


def make_suite_verb(suite: str) -> Callable[..., None]:
    """The verb behind `genodiff finetune SUITE`."""
    return make_sweep_verb(SuiteData, what=suite)


def _list_rows(_: Any, found: dict[str, Any]) -> list[Any]:
    return [*found["rows"], *found["ensembles"]]


def _show(asked: Any, found: dict[str, Any]) -> None:
    """The table of the rows and where their pages are, or the plan."""
    if asked.plan:
        lines = describe_plan(found)
    else:
        lines = summarise_rows(found["rows"], found["comparisons"], found["ensembles"])
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
    for path in found.get("files", ()):
        _log.info("%s", path)
