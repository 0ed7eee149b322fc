"""The interface of track formats, and the names that genome browsers give to contigs.

A format is a class in a file of `track_formats`, or of a plug-in. Code that lists, checks or writes
formats reads the registry:

    @FORMATS.register("bigwig")
    class BigWig(TrackFormat): ...

A browser silently omits contigs whose names it does not know. Contigs are therefore renamed to
match the assembly of a hub, and those without a match are reported. UCSC's assemblies with names
such as hg38 prefix chromosomes with `chr`, so `1` becomes `chr1`, and call the mitochondrion chrM.
Names in other assemblies, such as GCF_000146045.2, are left unchanged. For assemblies that are
recipes lengths are known too: a contig with the length of exactly one chromosome is renamed to it.
"""

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from genodiff.data.recipe import load_recipe
from genodiff.errors import format_count
from genodiff.io import atomic
from genodiff.io.file_kinds import hide_all_folders
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
    """Map each contig to its name in the browser's assembly `genome`, or to itself if that is None.

    `contigs` are names and lengths. A contig without a match, or whose new name is already in use,
    keeps its name. Both this and lengths that differ from the assembly's are logged.
    """
    if genome is None or not _UCSC.fullmatch(genome):
        return {name: name for name in contigs}
    sizes = load_recipe(genome).contigs if genome in _RECIPES else {}
    names: dict[str, str] = {}
    unknown, other = [], []
    for name, length in contigs.items():
        found = _find_name(name, length, genome, sizes)
        if found is None or (found != name and (found in contigs or found in names.values())):
            unknown.append(name)
            found = name
        elif sizes and sizes.get(found, length) != length:
            other.append((length, found))
        names[name] = found
    if renamed := [(old, new) for old, new in names.items() if old != new]:
        n = format_count(len(renamed), "contig")
        log.info("%s renamed as in %s: '%s' is now %s", n, genome, *renamed[0])
    if unknown:
        more = f" and {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
        what = "'%s'%s could not be matched to a contig of %s: its browser will not show it"
        log.warning(what, unknown[0], more, genome)
    if other:
        ours, name = other[0]
        what = "%s has %s bases here and %s in %s: is it that assembly?"
        log.warning(what, name, f"{ours:,}", f"{sizes[name]:,}", genome)
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


def rename_blocks(
    blocks: Callable[[], Iterable[BaseTracks]], names: Mapping[str, str], contigs: Sequence[str]
) -> Iterator[BaseTracks]:
    """Rename the contigs of blocks, and sort them by the new name's bytes, as a bigWig requires.

    `contigs` are those of the blocks, in their order. Blocks that come too early are read again.
    """
    place = {name: number for number, name in enumerate(dict.fromkeys(contigs))}
    rounds: list[list[str]] = []
    for name in sorted(place, key=lambda name: names[name].encode()):
        if rounds and place[rounds[-1][-1]] < place[name]:
            rounds[-1].append(name)
        else:
            rounds.append([name])
    for wanted in rounds:
        for block in blocks():
            if block.contig in wanted:
                yield replace(block, contig=names[block.contig])


class TrackContent(NamedTuple):
    """The tracks that a format writes.

    `blocks` yields them from the beginning, interval by interval, and may be called several times.
    `contigs` are the lengths of all contigs, and `intervals` the requested ones, 0-based and
    half-open. `draw` writes the page of all intervals, or the picture of one, depending on the
    ending of its path. `kinds` are the tracks.
    """

    blocks: Callable[[], Iterable[BaseTracks]]
    contigs: Mapping[str, int]
    intervals: Sequence[tuple[str, int, int]]
    draw: Callable[[Path], None]
    kinds: TrackKinds = TRACKS


class TrackFormat(ABC):
    """A file format for tracks; writers hold one block of bases at a time.

    `kind` defines the contents of its files.

        tracks     one file per track, for genome browsers: contigs are named as in the hub's
                   assembly, and chrom.sizes is added
        table      one file with all tracks, tracks.npz
        picture    one file of one region, drawn; of at most `MOST_DRAWN` bases
        page       one file of all regions, drawn; of at most `MOST_DRAWN` bases
    """

    suffix: ClassVar[str]
    """The file extension, such as .bw."""
    kind: ClassVar[Literal["tracks", "table", "picture", "page"]]

    @property
    def is_drawn(self) -> bool:
        """Whether the format is a picture or a page."""
        return self.kind in ("picture", "page")

    def check(self) -> None:
        """Raises `MachineError` if a package is missing."""
        return

    def list_files(self, kinds: TrackKinds = TRACKS) -> list[str]:
        """List the names of the files that hold these tracks."""
        if self.kind != "tracks":
            return [f"tracks{self.suffix}"]
        return ["chrom.sizes", *(f"{name}{self.suffix}" for name in kinds)]

    @abstractmethod
    def write(self, folder: Path, content: TrackContent) -> None:
        """Write all files but chrom.sizes into `folder`. Raises `MachineError`."""


def write_format(folder: Path, name: str, content: TrackContent) -> None:
    """Write all files of one format into `folder`. Raises `MachineError`."""
    form = FORMATS[name]()
    if form.kind == "tracks":
        write_sizes(folder, content.contigs)
    form.write(folder, content)


class TrackSet(NamedTuple):
    """Tracks to be written as a folder, for any verb.

    `blocks` yields the tracks of `intervals` of `genome` from the beginning. `hub` and `facts`
    describe the hub that accompanies bigWigs.
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
        """Write the folder `out` atomically, and return the contents of its `sidecar`.

        `describe` is called with the folder, to add files, and the browser's names of contigs; it
        returns entries for the sidecar. Raises `MachineError`.
        """
        contigs = dict(self.genome.contigs)
        names = name_contigs(contigs, self.hub.genome)
        lengths = {names[name]: length for name, length in contigs.items()}

        def renamed() -> Iterable[Any]:
            return rename_blocks(self.blocks, names, [contig for contig, *_ in self.intervals])

        plain = TrackContent(self.blocks, contigs, self.intervals, self.draw, self.kinds)
        named = plain._replace(blocks=renamed, contigs=lengths)
        own = is_own_folder(out, sidecar)
        with atomic.atomic_directory(out, aside=not own, replace=own) as folder:
            for form in self.formats:
                write_format(folder, form, named if FORMATS[form].kind == "tracks" else plain)
            if "bigwig" in self.formats:
                write_hub(folder, self.genome, self.hub, self.facts, self.kinds)
            description = describe(folder, names)
            files = sorted(path.name for path in folder.iterdir())
            summary = {
                **description, "intervals": [list(one) for one in self.intervals],
                "names": {old: new for old, new in names.items() if old != new},
                "files": {name: describe_file(folder / name) for name in files},
            }  # fmt: skip
            # the folder may be published on a web server, so it names no local folders
            atomic.write_json(folder / sidecar, hide_all_folders(summary))
        return summary


def list_files(
    sidecar: str, formats: Sequence[str], kinds: TrackKinds, assembly: str | None
) -> list[str]:
    """List the files of a `TrackSet`; `assembly` names a hub that includes its sequence."""
    found = {sidecar}
    for form in formats:
        found |= set(FORMATS[form]().list_files(kinds))
    if "bigwig" in formats:
        found |= {"hub.txt", "genomes.txt", "trackDb.txt", "description.html"}
        found |= {f"{assembly}.2bit"} if assembly else set()
    return sorted(found)


def name_assembly(path: str | None) -> str:
    """A name for the genome of a FASTA file: that of the file, with letters that a hub can hold."""
    stem = Path(path or "sequences").name
    for ending in (".gz", ".bgz", ".fa", ".fasta", ".fna"):
        stem = stem.removesuffix(ending)
    found = re.sub(r"[^A-Za-z0-9_-]+", "_", stem).strip("_-")
    return found or "genome"
