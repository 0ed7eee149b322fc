"""Tracks of what relatives say, beside those of any model (`track_values.py`).

    relatives      2 − H bits of what relatives alone say of a base, the network being left out
    agree          the share of the votes that have the reference base (`memory/votes.py`)
    differ         the share that have another; what is left to 1 is where nothing stands over it
    relative_NAME  the probability that the relative has the reference base, minus that it has
                   another, from −1 to 1; near 0 where nothing of it aligns

Each place is told by all other places of its window.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from genodiff.maps.track_values import TRACKS, BaseTracks, Track, TrackKind, TrackKinds

MOST_STRIPS = 24
_NOT_SAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_SAME, _OTHER = "64,110,60", "150,60,60"


def name_related(told: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The names of the columns, as `related_sites.read_related` gives them, of what an output says
    of a model's relatives; none without relatives.
    """
    return () if told is None else ("relatives", "agree", "differ", *_name_genomes(told))


def _name_genomes(told: Mapping[str, Any]) -> list[str]:
    names: list[str] = []
    for number, one in enumerate(told["genomes"], 1):
        name = f"relative_{_NOT_SAFE.sub('_', one['name'])}"
        names.append(f"{name}_{number}" if name in names else name)
    return names


def list_kinds(told: Mapping[str, Any] | None) -> TrackKinds:
    """All tracks of a model with these relatives, by the names of their files."""
    if told is None:
        return TRACKS
    of_relatives = {
        "relatives": _kind("relatives", "Information of relatives alone, in bits", (0, 2), _SAME),
        "agree": _kind("agree", "Share of votes for the reference base", (0, 1), _SAME),
        "differ": _kind("differ", "Share of votes for another base", (0, 1), _OTHER),
    }
    genomes: Sequence[Mapping[str, Any]] = told["genomes"]
    for name, one in zip(_name_genomes(told), genomes, strict=True):
        label = f"{one['name']}: P(reference base) - P(another base), 0 where unaligned"
        of_relatives[name] = _kind(name, label, (-1, 1), _SAME)
    return {**TRACKS, **of_relatives}


class DrawnTrack(NamedTuple):
    """A track on a page or picture below the model's own; a strip is of one relative."""

    name: str
    title: str
    limits: tuple[float, float]
    is_strip: bool


def list_drawn(told: Mapping[str, Any]) -> list[DrawnTrack]:
    """Those that a page draws; `told` is what the sidecar says. Of many relatives the first.

    Beside them are the names and limits of values of other files (`value_rows.py`).
    """
    beside = [DrawnTrack(name, name, limits, False) for name, limits in told.get("beside", ())]
    relatives = told.get("relatives")
    if relatives is None:
        return beside
    strips = [
        DrawnTrack(name, one["name"], (-1, 1), True)
        for name, one in zip(_name_genomes(relatives), relatives["genomes"], strict=True)
    ]
    both = [("relatives", "relatives, bits", (0, 2)), ("agree", "agree", (0, 1))]
    return [*(DrawnTrack(*one, False) for one in both), *beside, *strips[:MOST_STRIPS]]


def _kind(name: str, label: str, limits: tuple[int, int], colour: str) -> TrackKind:
    return TrackKind(label, limits, colour, partial(_take, name))


def _take(name: str, one: BaseTracks) -> Track:
    return one.related[name]
