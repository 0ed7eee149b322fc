"""Parquet: a row for each base that was read, with contig, pos (from 1), ref, and the tracks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from genodiff.io.tables import write_parquet
from genodiff.maps.track_files import FORMATS, TrackContent, TrackFormat
from genodiff.maps.track_values import TRACKS, BaseTracks, TrackKinds

_PART = 1 << 18  # bases of a part


@FORMATS.register("parquet")
class Parquet(TrackFormat):
    """One table, written in parts that polars joins as a stream."""

    suffix = ".parquet"
    kind = "table"

    def write(self, folder: Path, content: TrackContent) -> None:
        path = folder / f"tracks{self.suffix}"
        write_parquet(path, _join(content), row_group_size=_PART, maintain_order=True)


def _join(content: TrackContent) -> Iterator[pl.DataFrame]:
    """The frames of the blocks, joined to `_PART` bases or more."""
    held: list[pl.DataFrame] = []
    for block in content.blocks():
        held.append(make_track_frame(block, content.kinds))
        if sum(one.height for one in held) >= _PART:
            yield pl.concat(held)
            held = []
    if held:
        yield pl.concat(held)


def make_track_frame(block: BaseTracks, kinds: TrackKinds = TRACKS) -> pl.DataFrame:
    """A row for each base with values: contig, pos (from 1), ref, and the tracks."""
    known, at = block.known, np.flatnonzero(block.known)
    letters = np.frombuffer(block.letters.encode(), "S1").astype("U1")[known]
    contig = pl.repeat(block.contig, len(at), eager=True, dtype=pl.String)
    ref = pl.Series(letters.tolist(), dtype=pl.String)
    columns: dict[str, Any] = {"contig": contig, "pos": at + block.start + 1, "ref": ref}
    for name, kind in kinds.items():
        if not name.startswith("logo_"):
            columns[name] = pl.Series(np.ascontiguousarray(kind.compute(block)[known]))
    return pl.DataFrame(columns)
