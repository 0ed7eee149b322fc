"""bigWig: p_A.bw ... surprisal.bw, one value a base, none where nothing was read."""

from pathlib import Path

import numpy as np

from genodiff.io.value_tracks import SUFFIX, import_bigwig, write_bigwigs
from genodiff.maps.track_files import FORMATS, TrackContent, TrackFormat


@FORMATS.register("bigwig")
class BigWig(TrackFormat):
    """A bigWig for each track, with all contigs in its header."""

    suffix = SUFFIX
    kind = "tracks"

    def check(self) -> None:
        import_bigwig()

    def write(self, folder: Path, content: TrackContent) -> None:
        """Write them into `folder`, in which a hub may be made of them."""
        with write_bigwigs(folder, content.kinds, content.contigs) as add:
            for block in content.blocks():
                for name, kind in content.kinds.items():
                    values = np.asarray(kind.compute(block), np.float32)
                    add(name, block.contig, block.start, np.where(block.known, values, np.nan))
