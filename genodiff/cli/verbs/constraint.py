"""Evolutionary constraint of each base of a genome, from unaligned genomes of related species.

Two FASTA files in, a number for every base out: rejected substitutions, phyloP's scale, the
probability of the slow classes, coverage, and conserved elements, as a track hub.
"""

from collections.abc import Mapping
from typing import Any

from genodiff.api.constraint import constraint as write_constraint
from genodiff.cli.request_flags import make_verb
from genodiff.errors import format_count


def describe_constraint(told: Mapping[str, Any]) -> str:
    """What was written, in a line."""
    parts = [format_count(told["bases"], "base")]
    if "scored" in told:
        share = told["scored"] / max(told["known"], 1)
        parts.append(f"{told['scored']:,} scored ({share:.1%} of known bases)")
        parts.append(f"{format_count(told['elements'], 'conserved element')} at FDR {told['fdr']}")
    return ", ".join(parts)


constraint = make_verb(write_constraint, describe_constraint)
