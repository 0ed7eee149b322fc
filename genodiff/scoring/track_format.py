"""The formats of tracks, their files, and the names that an output may have."""

import re
from collections.abc import Sequence
from pathlib import Path

from genodiff.errors import UsageError, did_you_mean

FORMATS = ("bigwig", "bedgraph", "bedgraph.gz", "npz", "parquet", "html")
DEFAULT = ("bigwig", "html")
MOST_DRAWN = 100_000
"""Bases of one page."""
SIDECAR = "tracks.json"
PAGE = "tracks.html"
SHARD_ENDING = ".npy"
HOLDS = "chances of the bases of a shard of tracks"
NO_EMAIL = "nobody@example.org"
"""An address of nobody's, since a hub must have one."""

_ENDINGS = (
    ".bw", ".bigwig", ".bedgraph", ".gz", ".npz", ".npy", ".parquet", ".html", ".tsv", ".json"
)  # fmt: skip
_GENOME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+")


def choose_formats(wanted: Sequence[str] | None, bases: int) -> tuple[str, ...]:
    """The formats, in the order of `FORMATS`; by default a page only where it can hold all.

    Raises `UsageError` for an unknown one, and for a page of too many bases.
    """
    for one in wanted or ():
        if one not in FORMATS:
            raise UsageError(f"'{one}' is no format", fix=did_you_mean(one, FORMATS))
    if "html" in (wanted or ()) and bases > MOST_DRAWN:
        what = f"{bases:,} bases are more than the {MOST_DRAWN:,} that a page holds"
        raise UsageError(what, fix="give fewer regions, or leave out --format html")
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
