"""fixedStep wig: a value a line, a header where bases follow one another; wig.gz is BGZF."""

from collections.abc import Iterator

import numpy as np

from genodiff.maps.track_files import FORMATS
from genodiff.maps.track_formats.bedgraph import BedGraph
from genodiff.maps.track_values import BaseTracks, TrackKinds


@FORMATS.register("wig")
class Wig(BedGraph):
    """A wiggle file for each track, as phyloP and phastCons write them."""

    suffix = ".wig"

    def format(self, block: BaseTracks, kinds: TrackKinds) -> Iterator[tuple[str, str]]:
        """The name of each track, and the lines of each run of bases with values."""
        at = np.flatnonzero(block.known)
        runs = [run for run in np.split(at, np.flatnonzero(np.diff(at) > 1) + 1) if len(run)]
        for name, kind in kinds.items():
            values = kind.compute(block)
            for run in runs:
                start = block.start + int(run[0]) + 1
                numbers = "\n".join(f"{x:.6g}" for x in values[run].tolist())
                yield name, f"fixedStep chrom={block.contig} start={start} step=1\n{numbers}\n"


@FORMATS.register("wig.gz")
class ZippedWig(Wig):
    """The same in BGZF."""

    suffix = ".wig.gz"
    zipped = True
