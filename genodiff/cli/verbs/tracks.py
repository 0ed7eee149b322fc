"""Tracks of a genome: what a model says of each base, as bigWig, track hub, table or page.

They are p(A), p(C), p(G) and p(T) given all other bases, a logo, entropy, information, and the
surprisal of the reference. A base that was not read, or is N, has no value. The same command goes
on where an interrupted one was.
"""

import json as json_module
import logging
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from genodiff.api.tracks import NO_EMAIL, list_formats
from genodiff.api.tracks import tracks as write_tracks
from genodiff.cli.common import (
    OUTPUT,
    Common,
    Force,
    Json,
    Memory,
    ModelPath,
    Plan,
    convert_whole_number,
    print_plan,
    stop_on_sigterm,
)
from genodiff.cli.map_flags import Fresh, MapContext, MapGenes, MapRegions, WindowBatch
from genodiff.io.counts import format_count
from genodiff.io.progress import format_duration

_log = logging.getLogger("genodiff")


def tracks(
    run: ModelPath,
    *,
    fasta: Annotated[
        str, Parameter(help="FASTA file; all of it is read unless --region or --bed says so.")
    ],
    out: Annotated[
        str, OUTPUT, Parameter(help="Folder to write; with --shard a .npy file of the part.")
    ],
    region: MapRegions = None,
    bed: Annotated[
        str | None,
        Parameter(
            help="BED file of regions; the strand column is not used: tracks run along the genome."
        ),
    ] = None,
    format: Annotated[
        list[str] | None,
        Parameter(
            help=f"{', '.join(list_formats())}; bigwig comes with a track hub, svg, png and pdf "
            "are of one region; may be given several times [bigwig, and html up to 100,000 bases].",
            negative="",
        ),
    ] = None,
    every: Annotated[
        int | None,
        Parameter(
            converter=convert_whole_number,
            help="Mask bases so far apart at once: quicker, not exact (default: each by itself).",
        ),
    ] = None,
    context: MapContext = None,
    genome: Annotated[
        str | None,
        Parameter(
            help="UCSC's name of the genome, such as hg38, for the hub, whose names contigs then "
            "have (default: the hub brings the sequence)."
        ),
    ] = None,
    email: Annotated[str, Parameter(help="Address that stands in the hub.")] = NO_EMAIL,
    memory: Memory = None,
    genes: MapGenes = None,
    batch_size: WindowBatch = 8,
    shard: Annotated[
        str | None, Parameter(help="i/n: the i-th of n parts; `genodiff merge` joins them.")
    ] = None,
    fresh: Fresh = False,
    json: Json = False,
    plan: Plan = False,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Write the tracks of a genome, or of regions of it."""
    common.prepare()
    with stop_on_sigterm():
        told = write_tracks(
            run,
            Path(fasta),  # a string of DNA letters would be a sequence
            out=out,
            bed=bed,
            region=region or (),
            formats=format,
            every=every,
            context=context,
            genome=genome,
            email=email,
            memory=memory,
            genes=genes,
            batch_size=batch_size,
            shard=shard,
            device=common.device,
            plan=plan,
            fresh=fresh,
            force=force,
        )
    if json:
        print(json_module.dumps(told))
    elif plan:
        print_plan(told)
    if not plan:
        _log.info("%s: %s", out, describe_tracks(told))


def describe_tracks(told: dict[str, Any]) -> str:
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
    return ", ".join([*parts, f"in {format_duration(told['seconds'])}"])
