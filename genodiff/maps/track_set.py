"""Tracks that any verb writes as a folder: files, a hub and a sidecar. No torch."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from genodiff.io import atomic
from genodiff.io.identity import hide_all_folders
from genodiff.io.target import describe_file, is_own_folder
from genodiff.maps.map_regions import Interval
from genodiff.maps.track_files import TrackContent, name_contigs, rename_blocks, write_format
from genodiff.maps.track_format import FORMATS
from genodiff.maps.track_hub import HubRequest, write_hub
from genodiff.maps.track_values import BaseTracks, TrackKinds
from genodiff.scoring.variant_windows import Contigs


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
