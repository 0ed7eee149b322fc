"""Read a data set from end to end and judge it; exit 3 with one line where it is not sound.

Leaks between train and test are warned of. Nothing is written.
"""

import logging
import sys
from collections.abc import Iterator
from typing import Any

from genodiff.api.labelled_data import audit, list_warnings
from genodiff.cli.request_flags import make_verb
from genodiff.cli.verbs.finetune.audit import list_audits
from genodiff.errors import printable

_log = logging.getLogger("genodiff")
_KEEP = ("suite", "task", "split", "classes", "counts", "lengths", "notes")


def _judge(asked: Any, found: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], list[str]]]:
    """The name of each data set, what is found of it, and its warnings, which are said."""
    for each in list_audits(asked, found):
        name = f"{each['suite']}/{each['task']}" if "tasks" in found else str(asked.dataset)
        warnings = list_warnings(each)
        for warning in warnings:
            _log.warning("warning: %s: %s", printable(name), warning)
        yield printable(name), each, warnings


def _list_rows(asked: Any, found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for _, each, warnings in _judge(asked, found):
        yield {key: each[key] for key in _KEEP} | {"warnings": warnings}


def _show(asked: Any, found: dict[str, Any]) -> None:
    """A line about each data set that is sound."""
    for name, each, _ in _judge(asked, found):
        counts = "; ".join(
            f"{part} {' + '.join(f'{n:,}' for n in of.values())}"
            for part, of in each["counts"].items()
        )
        spans = each["lengths"].values()
        unit = "bases" if each["domain"] == "dna" else "bytes"
        bases = f"{min(s[0] for s in spans):,} to {max(s[2] for s in spans):,} {unit}"
        of = f"classes {', '.join(each['classes'])}" if each["classes"] else "values"
        sys.stdout.write(f"{name}: sound; {of}; {counts}; {bases}\n")


check = make_verb(audit, show=_show, rows=_list_rows, fixed={"model": ()})
