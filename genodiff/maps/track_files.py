"""Tracks as files: what a format is, and what it is given.

A format is a class in a file of `track_formats`, or of a plug-in. All that names, checks or writes
a format asks the registry:

    @FORMATS.register("bigwig")
    class BigWig(TrackFormat): ...
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from genodiff.maps.track_format import FORMATS as FORMATS
from genodiff.maps.track_hub import write_sizes
from genodiff.maps.track_values import TRACKS, BaseTracks, TrackKinds


class TrackContent(NamedTuple):
    """What is written: all tracks from the beginning, interval after interval.

    `blocks` may be called several times. `contigs` are the lengths of all contigs, and `intervals`
    those that were asked for, 0-based and half-open. `draw` writes the page of all intervals, or
    the picture of one, by the ending of its path. `kinds` are the tracks.
    """

    blocks: Callable[[], Iterable[BaseTracks]]
    contigs: Mapping[str, int]
    intervals: Sequence[tuple[str, int, int]]
    draw: Callable[[Path], None]
    kinds: TrackKinds = TRACKS


class TrackFormat(ABC):
    """One format; a block of bases is in memory at a time.

    `kind` says what its files hold.

        tracks     a file for each track, for genome browsers: contigs have the names of the genome
                   that a hub is for, and chrom.sizes stands beside them
        table      one file with all of them, tracks.npz
        picture    one file of one region, drawn; of at most `MOST_DRAWN` bases
        page       one file of all regions, drawn; of at most `MOST_DRAWN` bases
    """

    suffix: ClassVar[str]
    """The ending of its files, such as .bw."""
    kind: ClassVar[Literal["tracks", "table", "picture", "page"]]

    @property
    def is_drawn(self) -> bool:
        """Whether it is a picture or a page."""
        return self.kind in ("picture", "page")

    def check(self) -> None:
        """Raises `MachineError` where a package is missing."""
        return

    def list_files(self, kinds: TrackKinds = TRACKS) -> list[str]:
        """The names of its files of these tracks."""
        if self.kind != "tracks":
            return [f"tracks{self.suffix}"]
        return ["chrom.sizes", *(f"{name}{self.suffix}" for name in kinds)]

    @abstractmethod
    def write(self, folder: Path, content: TrackContent) -> None:
        """Write its files into `folder`, but for chrom.sizes. Raises `MachineError`."""


def write_format(folder: Path, name: str, content: TrackContent) -> None:
    """Write all files of one format into `folder`. Raises `MachineError`."""
    form = FORMATS[name]()
    if form.kind == "tracks":
        write_sizes(folder, content.contigs)
    form.write(folder, content)
