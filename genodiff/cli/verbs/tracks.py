"""Tracks of a genome: what a model says of each base, as bigWig, track hub, table or page.

They are p(A), p(C), p(G) and p(T) given all other bases, a logo, entropy, information, and the
surprisal of the reference. A base that was not read, or is N, has no value. The same command goes
on where an interrupted one was.
"""

from collections.abc import Mapping
from typing import Any

from genodiff.api.maps import tracks as write_tracks
from genodiff.cli.request_flags import make_verb
from genodiff.errors import format_count


def describe_tracks(told: Mapping[str, Any]) -> str:
    """What was written, in a line."""
    spans = format_count(len(told["intervals"]), "interval")
    parts = [f"{format_count(told['bases'], 'base')} of {spans}"]
    if "read" in told:
        parts.append(f"{told['read']:,} read")
        parts.append(f"{told['mean_information_bits']:.4f} bits of information a base")
    company = told.get("company")
    if company:
        median, worst = company["bits"]
        parts.append(
            f"--every {told['every']} moves information by {median:.2g} bits (median, at most "
            f"{worst:.2g} at {company['sites']} bases)"
        )
    return ", ".join(parts)


tracks = make_verb(write_tracks, describe_tracks)
