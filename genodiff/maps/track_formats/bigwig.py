"""bigWig: p_A.bw ... surprisal.bw, one value a base, none where nothing was read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import MachineError
from genodiff.io.file_names import find_plain_path
from genodiff.io.value_tracks import import_bigwig
from genodiff.maps.track_files import FORMATS, TrackContent, TrackFormat
from genodiff.maps.track_hub import sort_contigs

_VALUES = 1 << 9  # of a block of a bigWig: closing one holds 100,000 blocks at a time


@FORMATS.register("bigwig")
class BigWig(TrackFormat):
    """A bigWig for each track, with all contigs in its header."""

    suffix = ".bw"
    kind = "tracks"

    def check(self) -> None:
        """See `import_bigwig`."""
        import_bigwig()

    def write(self, folder: Path, content: TrackContent) -> None:
        """Write them into `folder`, in which a hub may be made of them."""
        bigwig, contigs = import_bigwig(), content.contigs
        header = [(name, contigs[name]) for name in sort_contigs(contigs)]
        files: dict[str, Any] = {}
        plain = find_plain_path(folder)
        try:
            for name in content.kinds:
                files[name] = bigwig.open(f"{plain}/{name}{self.suffix}", "w")
                files[name].addHeader(header)
            for block in content.blocks():
                runs = list(_find_runs(block.known))
                for name, kind in content.kinds.items():
                    values = np.ascontiguousarray(kind.compute(block), np.float32)
                    for first, last in runs:
                        at = block.start + first
                        files[name].addEntries(
                            block.contig, at, values=values[first:last], span=1, step=1
                        )
            while files:  # one after the other: closing takes memory, some bytes for each base
                files.popitem()[1].close()
        except RuntimeError as fault:
            what = f"a bigWig cannot be written: {fault}"
            fix = "see that the disk has room, and try again"
            raise MachineError(what, file=folder, fix=fix) from None
        finally:
            for file in files.values():
                file.close()


def _find_runs(known: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """First and last + 1 of the stretches of values, each of at most `_VALUES`."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]])))
    for first, last in edges.reshape(-1, 2).tolist():
        for start in range(first, last, _VALUES):
            yield start, min(start + _VALUES, last)
