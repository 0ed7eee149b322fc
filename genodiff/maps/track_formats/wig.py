"""fixedStep wig: a value a line, a header where bases follow one another; wig.gz is BGZF."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from Bio import bgzf

from genodiff.io.atomic import write_error
from genodiff.maps.track_files import FORMATS, TrackContent, TrackFormat
from genodiff.maps.track_values import BaseTracks, TrackKind


@FORMATS.register("wig")
class Wig(TrackFormat):
    """A wiggle file for each track, as phyloP and phastCons write them."""

    suffix = ".wig"
    kind = "tracks"
    zipped = False

    def write(self, folder: Path, content: TrackContent) -> None:
        """Write them into `folder`."""
        with ExitStack() as stack:
            sinks: dict[str, Any] = {}
            for name in content.kinds:
                file = stack.enter_context(open(folder / f"{name}{self.suffix}", "wb"))
                sinks[name] = bgzf.BgzfWriter(fileobj=file) if self.zipped else file
            try:
                for block in content.blocks():
                    for name, kind in content.kinds.items():
                        for text in _format_runs(block, kind):
                            sinks[name].write(text.encode())
                if self.zipped:
                    for sink in sinks.values():
                        sink.close()
            except OSError as fault:
                raise write_error(folder, fault) from None


@FORMATS.register("wig.gz")
class ZippedWig(Wig):
    """The same in BGZF."""

    suffix = ".wig.gz"
    zipped = True


def _format_runs(block: BaseTracks, kind: TrackKind) -> Iterator[str]:
    at = np.flatnonzero(block.known)
    values = kind.compute(block)
    for run in np.split(at, np.flatnonzero(np.diff(at) > 1) + 1):
        if len(run):
            start = block.start + int(run[0]) + 1
            numbers = "\n".join(f"{x:.6g}" for x in values[run].tolist())
            yield f"fixedStep chrom={block.contig} start={start} step=1\n{numbers}\n"
