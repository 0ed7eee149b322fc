"""The registry of the formats of tracks, and the names that an output may have. No torch."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from genodiff.errors import UsageError, did_you_mean
from genodiff.registry import Registry

if TYPE_CHECKING:
    from genodiff.maps.track_files import TrackFormat

DEFAULT = ("bigwig", "html")
MOST_DRAWN = 100_000
"""Bases of one page."""
SIDECAR = "tracks.json"
SHARD_ENDING = ".npy"
HOLDS = "chances of the bases of a shard of tracks"
LEAST_CONTEXT = 8
"""Bases of the smallest context; below, a tile may have no base."""
NO_EMAIL = "nobody@example.org"
"""An address of nobody's, since a hub must have one."""

_ENDINGS = (".bw", ".gz", ".npy", ".tsv", ".json")  # of files, beside the names of formats
_GENOME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+")


FORMATS: "Registry[type[TrackFormat]]" = Registry("format", package="genodiff.maps.track_formats")
"""The formats by name; the order of outputs."""


def list_formats() -> list[str]:
    """The names of all formats."""
    return FORMATS.list_names()


def check_formats(wanted: Sequence[str]) -> None:
    """Raises `UsageError` for a name that no format has, naming what is near."""
    for one in wanted:
        if one not in list_formats():
            raise UsageError(f"'{one}' is no format", fix=did_you_mean(one, list_formats()))


def choose_formats(wanted: Sequence[str] | None, bases: int, intervals: int = 1) -> tuple[str, ...]:
    """The formats, in the order of `FORMATS`; by default a page only where it can hold all.

    Raises `UsageError` for an unknown one, for a page of too many bases, and for a picture of
    several intervals.
    """
    check_formats(wanted or ())
    drawn = [one for one in wanted or () if FORMATS[one]().is_drawn]
    if drawn and bases > MOST_DRAWN:
        what = f"{bases:,} bases are more than the {MOST_DRAWN:,} that a page or picture holds"
        raise UsageError(what, fix=f"give fewer regions, or leave out --format {drawn[0]}")
    pictures = [one for one in drawn if FORMATS[one].kind == "picture"]
    if pictures and intervals > 1:
        what = f"a .{pictures[0]} is of one region, and there are {intervals:,}"
        raise UsageError(what, fix="give one region, or --format html for all on one page")
    chosen = set(wanted or DEFAULT)
    if not wanted and bases > MOST_DRAWN:
        chosen.discard("html")
    return tuple(one for one in list_formats() if one in chosen)


def check_track_output(out: str | Path, *, shard: bool) -> None:
    """Raises `UsageError` where `out` is no folder, or with `shard` no .npy file."""
    name = str(out)
    if name in ("", "-") or name.startswith("-"):
        raise UsageError(f"--out needs the name of a folder, not {name!r}", fix="write ./-name")
    ending = Path(name).suffix.lower()
    if shard and ending != SHARD_ENDING:
        what = f"--shard writes a {SHARD_ENDING} file, and '{Path(name).name}' is none"
        raise UsageError(what, fix=f"give --out part1{SHARD_ENDING}; genodiff merge makes the rest")
    is_file = ending in _ENDINGS or ending[1:] in list_formats()
    if not shard and is_file and not Path(name).is_dir():
        what = f"tracks are a folder of files, and '{Path(name).name}' is a file's name"
        raise UsageError(what, fix="give --out FOLDER and --format FORMAT")


def check_hub_options(genome: str | None, email: str) -> None:
    """Raises `UsageError` for a name or an address that a hub cannot hold."""
    if genome is not None and not _GENOME.fullmatch(genome):
        what = f"--genome {genome!r} is no name of a genome"
        raise UsageError(what, fix="give UCSC's name, such as hg38 or GCF_000146045.2")
    if not _EMAIL.fullmatch(email):
        raise UsageError(f"--email {email!r} is no address", fix="give NAME@HOST")
