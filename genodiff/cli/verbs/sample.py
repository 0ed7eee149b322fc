"""Sample DNA to FASTA, from nothing, into a template's N, or into regions of a genome.

The same command goes on where an interrupted one was: finished records are kept.
"""

from collections.abc import Mapping
from typing import Any

from genodiff.api.sample import sample as write_samples
from genodiff.cli.request_flags import make_verb
from genodiff.domain import DOMAINS
from genodiff.errors import format_count


def _say(told: Mapping[str, Any]) -> str:
    records, unit = told["records"], DOMAINS[told.get("domain", "dna")].unit
    positions = sum(record["length"] for record in records)
    filled = sum(record.get("filled", record["length"]) for record in records)
    size = format_count(positions, unit)
    size = size if filled == positions else f"{filled:,} of {size} filled"
    calls = format_count(told["evaluations"], "evaluation")
    return f"{format_count(len(records), 'record')}, {size}, {calls}"


sample = make_verb(write_samples, _say)
