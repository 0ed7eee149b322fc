"""Dependency maps: how a substitution at one base changes what a model says of another.

The dependency of target j on source i is the largest change of the log-odds of a base at j, with j
masked, by putting another base at i. The map of a region of up to 1,024 bases is a table, arrays or
a picture. The same command goes on where an interrupted one was.
"""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from genodiff.api.dependencies import EVERY
from genodiff.api.dependencies import dependencies as write_map
from genodiff.cli.common import (
    Common,
    Force,
    Json,
    Memory,
    ModelPath,
    Plan,
    convert_whole_number,
    stop_on_sigterm,
)
from genodiff.cli.map_flags import (
    Fresh,
    MapBed,
    MapContext,
    MapFasta,
    MapGenes,
    MapOutput,
    MapRegions,
    WindowBatch,
    check_map_output,
    print_map,
)


def dependencies(
    run: ModelPath,
    *,
    fasta: MapFasta,
    out: MapOutput,
    region: MapRegions = None,
    bed: MapBed = None,
    every: Annotated[
        int,
        Parameter(
            converter=convert_whole_number,
            help="Targets this many bases apart are masked together; what that changes is told.",
        ),
    ] = EVERY,
    exact: Annotated[
        bool, Parameter(negative="", help="Mask each target by itself: 3 evaluations a pair.")
    ] = False,
    context: MapContext = None,
    unit: Annotated[
        Literal["nats", "bits"], Parameter(help="Unit of dependencies; 1 bit is 0.69 nats.")
    ] = "nats",
    memory: Memory = None,
    genes: MapGenes = None,
    batch_size: WindowBatch = 8,
    fresh: Fresh = False,
    json: Json = False,
    plan: Plan = False,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Write the dependency maps of regions."""
    common.prepare()
    check_map_output(out, json=json, plan=plan)
    with stop_on_sigterm():
        told = write_map(
            run,
            Path(fasta),  # a string of DNA letters would be a sequence
            out=out,
            bed=bed,
            region=region or (),
            every=every,
            exact=exact,
            context=context,
            unit=unit,
            memory=memory,
            genes=genes,
            batch_size=batch_size,
            device=common.device,
            plan=plan,
            fresh=fresh,
            force=force,
        )
    print_map(told, out, "bases", json=json, plan=plan, evaluations=True)
