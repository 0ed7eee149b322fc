"""Values of files, drawn below a model's own tracks: coverage, or what `genodiff predict` wrote.

A file is read whole, and what of it lies in the intervals is kept. Nothing of it goes into files of
tracks: it is drawn on the page and the picture alone.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.io.value_tracks import SUFFIX, read_values
from genodiff.jobs.options import name_tracks
from genodiff.maps.track_values import BaseTracks

PREDICTED_GENES = "labels.gff3"
_ROUNDED = 1e-3  # by which a sum of chances may be above 1


class ValueRow(NamedTuple):
    """Values of one file: its name, the ends of its scale, and (L,) of each interval."""

    name: str
    limits: tuple[float, float]
    values: tuple[NDArray[np.float32], ...]


def find_tracks(words: Sequence[str]) -> dict[str, str]:
    """Files by name, of NAME=FILE, and of folders that `genodiff predict` wrote, all their bigWigs.

    Raises `UsageError` for a name that comes twice.
    """
    found = []
    for word in words:
        files = sorted(Path(word).glob(f"*{SUFFIX}")) if Path(word).is_dir() else []
        found += [f"{one.stem}={one}" for one in files] or [word]
    return name_tracks(found)


def find_genes(words: Sequence[str]) -> str | None:
    """The file of genes that a folder of `genodiff predict` has; None where none has a gene."""
    for word in words:
        file = Path(word) / PREDICTED_GENES
        if file.exists():
            with file.open(encoding="utf-8") as lines:
                if any(not line.startswith("#") for line in lines):
                    return str(file)
    return None


def read_rows(
    tracks: Mapping[str, str], contigs: Mapping[str, int], intervals: Sequence[tuple[str, int, int]]
) -> list[ValueRow]:
    """What of the files lies in the intervals. Raises `DataError` as `read_values`."""
    rows = []
    for name, path in tracks.items():
        held = read_values(path, contigs)
        values = tuple(
            held[contig][start:end] if contig in held else np.full(end - start, np.nan, np.float32)
            for contig, start, end in intervals
        )
        most = max((float(np.nanmax(one, initial=0.0)) for one in values), default=0.0)
        least = min((float(np.nanmin(one, initial=0.0)) for one in values), default=0.0)
        rows.append(ValueRow(name, (least, max(1.0, math.ceil(most - _ROUNDED))), values))
    return rows


def add_rows(regions: Sequence[BaseTracks], rows: Sequence[ValueRow]) -> list[BaseTracks]:
    """The tracks of each interval, with the rows' values among what is drawn."""
    return [
        replace(one, related={**one.related, **{row.name: row.values[i] for row in rows}})
        for i, one in enumerate(regions)
    ]
