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
from genodiff.scoring.allele_score import LONGEST_SPAN, TOO_LONG


def _say(told: Mapping[str, Any]) -> str:
    records, scored = format_count(told["records"], "record"), format_count(told["scored"], "ALT")
    unscored = dict(told["unscored"])
    said = f"{records}, {scored} scored, {sum(unscored.values()):,} not"
    limit = f" (more than {told.get('longest', LONGEST_SPAN):,} bases: --longest)"
    why = [f"{n:,} {one}{limit if one == TOO_LONG else ''}" for one, n in unscored.items()]
    return said + (f": {', '.join(why)}" if why else "")


score = make_verb(write_scores, _say)
