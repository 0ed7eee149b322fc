"""Dependency maps: how a substitution at one base changes what a model says of another.

The dependency of target j on source i is the largest change of the log-odds of a base at j, with j
masked, by putting another base at i. The map of a region of up to 1,024 bases is a table, arrays or
a picture. The same command goes on where an interrupted one was.
"""

from collections.abc import Mapping
from typing import Any

from genodiff.api.maps import dependencies as write_map
from genodiff.cli.request_flags import make_verb
from genodiff.errors import format_count


def _say(told: Mapping[str, Any]) -> str:
    regions = format_count(len(told["regions"]), "region")
    evaluations = format_count(told["evaluations"], "evaluation")
    return f"{told['scored']:,} bases of {regions}, {evaluations}"


dependencies = make_verb(write_map, _say)
