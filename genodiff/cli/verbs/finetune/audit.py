"""What the test part gives away: duplicates of train, overlaps, and what needs no sequence.

SUITE/all audits every task of a suite. For Genomic Benchmarks coordinates are enough. Nothing is
written.
"""

import sys
from collections.abc import Iterable
from typing import Any

from genodiff.api.labelled_data import audit as audit_parts
from genodiff.api.labelled_data import audit_lines
from genodiff.cli.request_flags import make_verb


def list_audits(_: Any, found: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The audit of each task."""
    return found.get("tasks", [found])


def _show(asked: Any, found: dict[str, Any]) -> None:
    """What an audit finds, as lines."""
    for each in list_audits(asked, found):
        sys.stdout.write("".join(f"{line}\n" for line in audit_lines(each)))


audit = make_verb(audit_parts, show=_show, rows=list_audits)
