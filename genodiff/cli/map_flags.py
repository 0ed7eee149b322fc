"""The flags of verbs that map regions: `ism` and `dependencies`."""

from typing import Annotated

from cyclopts import Parameter

from genodiff.cli.common import convert_whole_number
from genodiff.errors import UsageError

MapFasta = Annotated[
    str, Parameter(help="FASTA file; each record is a region unless --region or --bed says so.")
]
MapRegions = Annotated[
    list[str] | None,
    Parameter(
        name=["--region", "--regions"],
        help="chr1:1,000-1,200, 1-based and inclusive; may be given several times.",
        negative="",
    ),
]
MapBed = Annotated[
    str | None, Parameter(help="BED file of regions (its strand column is not applied).")
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
