"""Embeddings of DNA windows to .npz, .parquet or .zarr."""

import json as json_module
import logging
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from genodiff.api.embed import embed as write_embeddings
from genodiff.cli.common import (
    OUTPUT,
    Common,
    Force,
    MapBed,
    MapRegions,
    ModelPath,
    check_file,
    convert_whole_number,
    print_plan,
    stop_on_sigterm,
)
from genodiff.io.counts import format_count
from genodiff.io.progress import format_duration

_log = logging.getLogger("genodiff")


def embed(
    run: ModelPath,
    fasta: Annotated[
        str,
        Parameter(
            allow_leading_hyphen=True,
            help="FASTA, GenBank or EMBL file, - for stdin; each record is a window unless --bed, "
            "--region, --features or --window says otherwise.",
        ),
    ],
    *,
    out: Annotated[Path, OUTPUT, Parameter(help="File to write: .npz, .parquet or .zarr.")],
    bed: MapBed = None,
    regions: MapRegions = None,
    features: Annotated[
        list[str] | None,
        Parameter(
            help="CDS, or CDS=dnaA: features of a GenBank or EMBL file, by type and name, in their "
            "own direction, with joined parts as one; with --bed, rows of that GTF or GFF3 file, "
            "each by itself; may be given several times.",
            negative="",
        ),
    ] = None,
    window: Annotated[
        int | None,
        Parameter(converter=convert_whole_number, help="Cut into pieces of this many bases."),
    ] = None,
    stride: Annotated[
        int | None,
        Parameter(
            converter=convert_whole_number,
            help="Bases from one piece to the next (default: --window).",
        ),
    ] = None,
    layer: Annotated[
        list[int] | None,
        Parameter(
            help="Layer, 0 (embedding) to n_layer; -1 is the last; may be given "
            "several times [-1].",
            negative="",
        ),
    ] = None,
    pool: Annotated[
        Literal["mean", "max", "center", "none"],
        Parameter(help="Over the bases of a window; none keeps each base."),
    ] = "mean",
    strand: Annotated[
        Literal["average", "forward", "both"],
        Parameter(help="Both strands averaged, the window as it stands, or both apart."),
    ] = "average",
    batch_size: Annotated[
        int,
        Parameter(
            converter=convert_whole_number,
            help="Windows at a time: changes the speed, not the figures.",
        ),
    ] = 32,
    shard: Annotated[
        str | None, Parameter(help="i/n: the i-th of n parts; `genodiff merge` joins them.")
    ] = None,
    fresh: Annotated[
        bool, Parameter(negative="", help="Do not go on after what is kept in OUT.partial.")
    ] = False,
    plan: Annotated[bool, Parameter(negative="", help="Say what would be done, and stop.")] = False,
    json: Annotated[bool, Parameter(negative="", help="One JSON object on stdout.")] = False,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Write the embeddings of windows, with their provenance beside them."""
    common.prepare()
    fasta = check_file(run, fasta, "embed RUN FASTA")
    with stop_on_sigterm():
        found = write_embeddings(
            run,
            Path(fasta),  # a string of DNA letters would be a sequence
            out=out,
            bed=bed,
            regions=regions or (),
            features=features or (),
            window=window,
            stride=stride,
            layer=layer or -1,
            pool=pool,
            strand=strand,
            batch_size=batch_size,
            device=common.device,
            shard=shard,
            plan=plan,
            fresh=fresh,
            force=force,
        )
    if json:
        print(json_module.dumps(found))
    elif plan:
        print_plan(found, 8)
    if not plan:
        _log.info(
            "%s: %s, %s in %s",
            out,
            format_count(found["windows"], "window"),
            format_count(found["bases"], "base"),
            format_duration(found["seconds"]),
        )
