"""bedGraph: contig, start (from 0), end and value as text, six decimals; bedgraph.gz is BGZF."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from Bio import bgzf

from genodiff.io.target import write_error
from genodiff.maps.track_files import FORMATS, TrackContent, TrackFormat
from genodiff.maps.track_values import BaseTracks, TrackKinds


@FORMATS.register("bedgraph")
class BedGraph(TrackFormat):
    """A bedGraph for each track."""

    suffix = ".bedGraph"
    kind = "tracks"
    zipped = False

    def write(self, folder: Path, content: TrackContent) -> None:
        with ExitStack() as stack:
            sinks: dict[str, Any] = {}
            for name in content.kinds:
                path = folder / f"{name}{self.suffix}"
                file = stack.enter_context(open(path, "wb"))
                sinks[name] = bgzf.BgzfWriter(fileobj=file) if self.zipped else file
            try:
                for block in content.blocks():
                    for name, text in self.format(block, content.kinds):
                        sinks[name].write(text.encode())
                if self.zipped:
                    for sink in sinks.values():
                        sink.close()
            except OSError as fault:
                raise write_error(folder, fault) from None

    def format(self, block: BaseTracks, kinds: TrackKinds) -> Iterator[tuple[str, str]]:
        """The name of each track, and the lines of a block of it."""
        at = block.start + np.flatnonzero(block.known)
        contig = pl.repeat(block.contig, len(at), eager=True)
        places = pl.DataFrame({"contig": contig, "start": at, "end": at + 1})
        for name, kind in kinds.items():
            values = pl.Series("value", kind.compute(block)[block.known], pl.Float32)
            rows = places.with_columns(values)
            yield name, rows.write_csv(separator="\t", include_header=False, float_precision=6)


@FORMATS.register("bedgraph.gz")
class ZippedBedGraph(BedGraph):
    """The same in BGZF."""

    suffix = ".bedGraph.gz"
    zipped = True
