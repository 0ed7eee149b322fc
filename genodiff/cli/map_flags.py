"""What verbs that map regions share, `ism` and `dependencies`: flags, and what they print."""

import json as json_module
import logging
from collections.abc import Mapping
from typing import Annotated, Any

from cyclopts import Parameter

from genodiff.cli.common import OUTPUT, convert_whole_number, print_plan
from genodiff.errors import UsageError
from genodiff.io.counts import format_count
from genodiff.io.progress import format_duration

STRAND_RULE = "a row on - is read as its reverse complement"
"""The rule of every verb that reads rows of BED in their own direction."""

_log = logging.getLogger("genodiff")

MapOutput = Annotated[
    str,
    OUTPUT,
    Parameter(help=".tsv, .parquet, .npz, .svg, .png, .pdf or .html; - for a table on stdout."),
]

MapFasta = Annotated[
    str, Parameter(help="FASTA file; each record is a region unless --region or --bed says so.")
]
MapRegions = Annotated[
    list[str] | None,
    Parameter(
        name=["--region", "--regions"],
        help="chr1:1,000-1,200, 1-based and inclusive, read as it stands; may be given several "
        "times.",
        negative="",
    ),
]
MapBed = Annotated[str | None, Parameter(help=f"BED file of regions; {STRAND_RULE}.")]
MapGenes = Annotated[
    str | None,
    Parameter(help="GFF3, GTF, BED or GenBank file whose genes are drawn below the picture."),
]
MapContext = Annotated[
    int | None,
    Parameter(
        converter=convert_whole_number,
        help="Bases of a window (default: the trained length).",
    ),
]
WindowBatch = Annotated[
    int,
    Parameter(
        converter=convert_whole_number, help="Windows at a time: changes the speed, never the map."
    ),
]
Fresh = Annotated[
    bool, Parameter(negative="", help="Do not go on after the rows kept in OUT.partial.")
]


def check_map_output(out: str, *, json: bool, plan: bool) -> None:
    """Raises `UsageError` for an output that cannot be meant."""
    if out == "" or (out != "-" and out.startswith("-")):
        raise UsageError(f"--out needs the name of a file, not {out!r}", fix="write ./-name")
    if json and out == "-" and not plan:
        raise UsageError("--json and the table both go to stdout", fix="give --out FILE")


def print_map(
    told: Mapping[str, Any], out: str, noun: str, *, json: bool, plan: bool, evaluations: bool
) -> None:
    """Print what was told of a map, or of its plan; `noun` is what its scored bases are called."""
    if json:
        print(json_module.dumps(told))
    elif plan:
        print_plan(told)
    if plan:
        return
    regions = format_count(len(told["regions"]), "region")
    parts = [f"{told['scored']:,} {noun} of {regions}"]
    parts += [format_count(told["evaluations"], "evaluation")] if evaluations else []
    _log.info("%s: %s, in %s", out, ", ".join(parts), format_duration(told["seconds"]))
