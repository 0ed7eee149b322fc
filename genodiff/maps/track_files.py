"""Tracks as files: what a format is, and what it is given.

A format is a class in a file of `track_formats`, or of a plug-in. All that names, checks or writes
a format asks the registry:

    @FORMATS.register("bigwig")
    class BigWig(TrackFormat): ...

Names of contigs as a genome browser has them: `1` of a FASTA file is `chr1` of UCSC's hg38.

A browser shows nothing of a contig whose name it does not know, and says nothing of it. So names
are turned into those of the assembly that a hub is for, and what cannot be turned is told.

UCSC's assemblies with names such as hg38 call chromosomes `chr` and what others call them, and the
mitochondrion chrM. Other assemblies, such as GCF_000146045.2, have names of their own, which are
left alone. Of assemblies that are recipes lengths are known too: a contig of the same length is
that chromosome, whatever it is called.
"""

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from genodiff.data.recipe import load_recipe
from genodiff.io import atomic
from genodiff.io.identity import hide_all_folders
from genodiff.io.regions import CHROMOSOME, MITOCHONDRIA
from genodiff.io.target import describe_file, is_own_folder
from genodiff.maps.map_regions import Interval
from genodiff.maps.track_format import FORMATS as FORMATS
from genodiff.maps.track_hub import HubRequest, write_hub, write_sizes
from genodiff.maps.track_values import TRACKS, BaseTracks, TrackKinds
from genodiff.scoring.variant_windows import Contigs

log = logging.getLogger("genodiff")

_RECIPES = ("hg38", "mm39", "sacCer3")
_UCSC = re.compile(r"[a-z][A-Za-z]{1,9}\d{1,3}")


def name_contigs(contigs: Mapping[str, int], genome: str | None) -> dict[str, str]:
    """The browser's name of each contig, for `genome` by its name; without one, its own.

    `contigs` are names and lengths. A contig that the browser will not show keeps its name, and a
    line in the log says so; another tells lengths that are not those of the assembly.
    """
    if genome is None or not _UCSC.fullmatch(genome):
        return {name: name for name in contigs}
    sizes = load_recipe(genome).contigs if genome in _RECIPES else {}
    names: dict[str, str] = {}
    unknown, other = [], []
    for name, length in contigs.items():
        found = _find_name(name, length, genome, sizes)
        if found is None or (found != name and found in contigs):
            unknown.append(name)
            found = name
        elif sizes and sizes.get(found, length) != length:
            other.append(found)
        names[name] = found
    _tell(names, unknown, other, genome, contigs, sizes)
    return names


def _find_name(name: str, length: int, genome: str, sizes: Mapping[str, int]) -> str | None:
    alike = [one for one, size in sizes.items() if size == length]
    if len(alike) == 1:
        return alike[0]
    if name in MITOCHONDRIA:  # hg19 has both: chrM is an older sequence
        return "chrMT" if genome == "hg19" and length == 16569 else "chrM"
    bare = name.removeprefix("chr")
    if CHROMOSOME.fullmatch(bare):
        return f"chr{bare}" if not sizes or f"chr{bare}" in sizes else None
    return name if bare != name else None


def _tell(
    names: Mapping[str, str], unknown: Sequence[str], other: Sequence[str], genome: str,
    contigs: Mapping[str, int], sizes: Mapping[str, int],
) -> None:  # fmt: skip
    turned = [(old, new) for old, new in names.items() if old != new]
    if turned:
        old, new = turned[0]
        log.info(
            "%s contigs have the names of %s: '%s' is %s", f"{len(turned):,}", genome, old, new
        )
    if unknown:
        more = f" and {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
        what = "'%s'%s is no name that %s is known to have: its browser will not show it"
        log.warning(what, unknown[0], more, genome)
    if other:
        name = other[0]
        ours = next(n for old, n in contigs.items() if names[old] == name)
        what = "%s has %s bases here and %s in %s: is it that assembly?"
        log.warning(what, name, f"{ours:,}", f"{sizes[name]:,}", genome)


def rename_blocks(
    blocks: Callable[[], Iterable[BaseTracks]], names: Mapping[str, str], contigs: Sequence[str]
) -> Iterator[BaseTracks]:
    """The tracks by their new names, in the order of these names' bytes, as a bigWig has them.

    `contigs` are those of the blocks, in their order. What comes too early is read again later.
    """
    place = {name: number for number, name in enumerate(dict.fromkeys(contigs))}
    rounds: list[list[str]] = []
    for name in sorted(place, key=lambda one: names[one].encode()):
        if rounds and place[rounds[-1][-1]] < place[name]:
            rounds[-1].append(name)
        else:
            rounds.append([name])
    for wanted in rounds:
        for block in blocks():
            if block.contig in wanted:
                yield replace(block, contig=names[block.contig])


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


class TrackSet(NamedTuple):
    """Tracks that are written as a folder, by whatever verb: of `intervals` of `genome`, which
    `blocks` gives from the beginning, in `formats`; `hub` and `facts` are those of bigWigs.
    """

    genome: Contigs
    intervals: list[Interval]
    blocks: Callable[[], Iterable[BaseTracks]]
    kinds: TrackKinds
    formats: Sequence[str]
    hub: HubRequest
    facts: Mapping[str, str]
    draw: Callable[[Path], None] = lambda _: None

    def write(
        self,
        out: str | Path,
        sidecar: str,
        describe: Callable[[Path, Mapping[str, str]], dict[str, Any]],
    ) -> dict[str, Any]:
        """Write all files of `out`, a folder that is complete or not there; what `sidecar` says.

        `describe` is given the folder, for further files, and the browser's names of contigs; it
        returns what the sidecar says beside the files. Raises `MachineError`.
        """
        contigs = dict(self.genome.contigs)
        names = name_contigs(contigs, self.hub.genome)
        lengths = {names[name]: length for name, length in contigs.items()}

        def renamed() -> Iterable[Any]:
            return rename_blocks(self.blocks, names, [one[0] for one in self.intervals])

        plain = TrackContent(self.blocks, contigs, self.intervals, self.draw, self.kinds)
        named = plain._replace(blocks=renamed, contigs=lengths)
        own = is_own_folder(out, sidecar)
        with atomic.atomic_directory(out, aside=not own, replace=own) as folder:
            for one in self.formats:
                write_format(folder, one, named if FORMATS[one].kind == "tracks" else plain)
            if "bigwig" in self.formats:
                write_hub(folder, self.genome, self.hub, self.facts, self.kinds)
            told = describe(folder, names)
            files = sorted(one.name for one in folder.iterdir())
            summary = {
                **told, "intervals": [list(one) for one in self.intervals],
                "names": {old: new for old, new in names.items() if old != new},
                "files": {name: describe_file(folder / name) for name in files},
            }  # fmt: skip
            # the folder is put on a web server as it is
            atomic.write_json(folder / sidecar, hide_all_folders(summary))
        return summary


def list_files(
    sidecar: str, formats: Sequence[str], kinds: TrackKinds, assembly: str | None
) -> list[str]:
    """The names of all files of a `TrackSet`; `assembly`: of a hub that brings its sequence."""
    found = {sidecar}
    for one in formats:
        found |= set(FORMATS[one]().list_files(kinds))
    if "bigwig" in formats:
        found |= {"hub.txt", "genomes.txt", "trackDb.txt", "description.html"}
        found |= {f"{assembly}.2bit"} if assembly else set()
    return sorted(found)
