"""Parquet: a row for each base that was read, with contig, pos (from 1), ref, and the tracks."""

import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from genodiff.io.file_kinds import find_plain_path
from genodiff.maps.track_files import FORMATS, TrackContent, TrackFormat
from genodiff.maps.track_values import TRACKS, BaseTracks, TrackKinds

_PART = 1 << 18  # bases of a part


@FORMATS.register("parquet")
class Parquet(TrackFormat):
    """One table, written in parts that polars joins as a stream."""

    suffix = ".parquet"
    kind = "table"

    def write(self, folder: Path, content: TrackContent) -> None:
        """Write tracks.parquet into `folder`."""
        path = folder / f"tracks{self.suffix}"
        with tempfile.TemporaryDirectory(dir=folder, prefix=".genodiff-") as parts_folder:
            plain = find_plain_path(parts_folder)
            held: list[pl.DataFrame] = []
            size = parts = 0

            def put() -> None:
                nonlocal held, size, parts
                if held:
                    pl.concat(held).write_parquet(f"{plain}/{parts:06d}.parquet")
                    held, size, parts = [], 0, parts + 1

            for block in content.blocks():
                held.append(make_track_frame(block, content.kinds))
                size += held[-1].height
                if size >= _PART:
                    put()
            put()
            found = sorted(Path(plain).iterdir())
            pl.scan_parquet(found).sink_parquet(
                find_plain_path(path), row_group_size=_PART, maintain_order=True
            )


def make_track_frame(block: BaseTracks, kinds: TrackKinds = TRACKS) -> pl.DataFrame:
    """A row for each base with values: contig, pos (from 1), ref, and the tracks."""
    known = block.known
    at = np.flatnonzero(known)
    letters = np.frombuffer(block.letters.encode(), "S1").astype("U1")[known]
    return pl.DataFrame(
        {
            "contig": pl.repeat(block.contig, len(at), eager=True, dtype=pl.String),
            "pos": at + block.start + 1,
            "ref": pl.Series(letters.tolist(), dtype=pl.String),
            **{
                name: pl.Series(np.ascontiguousarray(kinds[name].compute(block)[known]))
                for name in kinds
                if not name.startswith("logo_")
            },
        }
    )
