"""Score variants: how much likelier a model finds ALT than REF.

Positive is likelier. VCF, BCF, CSV, TSV, JSON lines and parquet come in, also those of CADD and of
this verb; VCF, TSV (in CADD's order of columns), parquet and JSON lines go out. Records stay in
their order, and none is dropped: an ALT that cannot be scored has its reason. The same command goes
on where an interrupted one was.
"""

from collections.abc import Mapping
from typing import Any

from genodiff.api.score import score as write_scores
from genodiff.cli.request_flags import make_verb
from genodiff.errors import format_count


def _say(told: Mapping[str, Any]) -> str:
    records, scored = format_count(told["records"], "record"), format_count(told["scored"], "ALT")
    unscored = dict(told["unscored"])
    said = f"{records}, {scored} scored, {sum(unscored.values()):,} not"
    why = [f"{n:,} {one}" for one, n in unscored.items()]
    if "too_long" in unscored:
        limit = f"(more than {told['longest']:,} bases: --longest)"
        why = [f"{one} {limit}" if one.endswith("too_long") else one for one in why]
    return said + (f": {', '.join(why)}" if why else "")


score = make_verb(write_scores, _say)
