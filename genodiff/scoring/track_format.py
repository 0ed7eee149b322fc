"""The formats of tracks, their files, and the names that an output may have."""

import re
from collections.abc import Sequence
from pathlib import Path

from genodiff.errors import UsageError, did_you_mean
from genodiff.scoring import map_format

PICTURES = tuple(one[1:] for one in map_format.PICTURES)
"""Of one region each."""
FORMATS = ("bigwig", "bedgraph", "bedgraph.gz", "npz", "parquet", *PICTURES, "html")
DEFAULT = ("bigwig", "html")
FOR_BROWSERS = ("bigwig", "bedgraph", "bedgraph.gz")
"""With the contigs' names of the genome that a hub is for."""
MOST_DRAWN = 100_000
"""Bases of one page."""
SIDECAR = "tracks.json"
DRAWN = (*PICTURES, "html")
"""Written as tracks.html and so on."""
SHARD_ENDING = ".npy"
HOLDS = "chances of the bases of a shard of tracks"
NO_EMAIL = "nobody@example.org"
"""An address of nobody's, since a hub must have one."""

_ENDINGS = (
    ".bw", ".bigwig", ".bedgraph", ".gz", ".npz", ".npy", ".parquet", ".tsv", ".json",
    *map_format.DRAWN,
)  # fmt: skip
_GENOME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+")


def choose_formats(wanted: Sequence[str] | None, bases: int, intervals: int = 1) -> tuple[str, ...]:
    """The formats, in the order of `FORMATS`; by default a page only where it can hold all.

    Raises `UsageError` for an unknown one, for a page of too many bases, and for a picture of
    several intervals.
    """
    for one in wanted or ():
        if one not in FORMATS:
            raise UsageError(f"'{one}' is no format", fix=did_you_mean(one, FORMATS))
    drawn = [one for one in wanted or () if one in DRAWN]
    if drawn and bases > MOST_DRAWN:
        what = f"{bases:,} bases are more than the {MOST_DRAWN:,} that a page or picture holds"
        raise UsageError(what, fix=f"give fewer regions, or leave out --format {drawn[0]}")
    pictures = [one for one in drawn if one in PICTURES]
    if pictures and intervals > 1:
        what = f"a .{pictures[0]} is of one region, and there are {intervals:,}"
        raise UsageError(what, fix="give one region, or --format html for all on one page")
    chosen = set(wanted or DEFAULT)
    if not wanted and bases > MOST_DRAWN:
        chosen.discard("html")
    return tuple(one for one in FORMATS if one in chosen)


def check_track_output(out: str | Path, *, shard: bool) -> None:
    """Raises `UsageError` where `out` is no folder, or with `shard` no .npy file."""
    name = str(out)
    if name in ("", "-") or name.startswith("-"):
        raise UsageError(f"--out needs the name of a folder, not {name!r}", fix="write ./-name")
    ending = Path(name).suffix.lower()
    if shard and ending != SHARD_ENDING:
        what = f"--shard writes a {SHARD_ENDING} file, and '{Path(name).name}' is none"
        raise UsageError(what, fix=f"give --out part1{SHARD_ENDING}; genodiff merge makes the rest")
    if not shard and ending in _ENDINGS and not Path(name).is_dir():
        what = f"tracks are a folder of files, and '{Path(name).name}' is a file's name"
        raise UsageError(what, fix="give --out FOLDER and --format FORMAT")


def check_hub_options(genome: str | None, email: str) -> None:
    """Raises `UsageError` for a name or an address that a hub cannot hold."""
    if genome is not None and not _GENOME.fullmatch(genome):
        what = f"--genome {genome!r} is no name of a genome"
        raise UsageError(what, fix="give UCSC's name, such as hg38 or GCF_000146045.2")
    if not _EMAIL.fullmatch(email):
        raise UsageError(f"--email {email!r} is no address", fix="give NAME@HOST")
