"""The beginning of a genome that has no index, in memory: what a plan knows of it."""

import logging

from genodiff.io.fasta import Header, scan_fasta
from genodiff.io.input_file import open_input
from genodiff.io.planning import is_cut

_log = logging.getLogger("genodiff")


class _OpenContigs(dict[str, int]):
    """Contigs of a genome of which only the first are known: any other name is one of the rest."""

    rest = 0

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and ":" not in name)

    def __missing__(self, name: str) -> int:
        return self.rest

    def get(self, name: str, default: object = None) -> int:  # type: ignore[override]
        """The length of any contig."""
        return self[name]


class GenomeHead:
    """The first contigs of a FASTA in memory; the last one that was read stands for all the rest.

    `share` is the part of the file that was read.
    """

    def __init__(self, path: str) -> None:
        letters: dict[str, list[bytes]] = {}
        self.descriptions: dict[str, str] = {}
        with open_input(path) as source:
            size, name = source.stat.st_size, ""
            for event in scan_fasta(source):
                if isinstance(event, Header):
                    name = event.name
                    letters[name] = []
                    self.descriptions |= {name: event.description} if event.description else {}
                else:
                    letters[name].append(event.letters())
                    if is_cut(source):
                        break
            self.share = min(1.0, source.size / size) if size else 1.0
        self.letters = {one: b"".join(pieces) for one, pieces in letters.items()}
        self.contigs: dict[str, int] = {one: len(read) for one, read in self.letters.items()}
        if self.share < 1:
            rest = round(sum(self.contigs.values()) * (1 / self.share - 1))
            self.contigs[name] += rest
            self.contigs = opened = _OpenContigs(self.contigs)
            opened.rest = rest
            _log.warning(
                "%s has no index yet: the plan reads %d %% of it; the rest counts as %s",
                path, max(1, round(100 * self.share)), name,
            )  # fmt: skip

    def holds(self, contig: str, end: int) -> bool:
        """Whether contig[:end] was read."""
        return end <= len(self.letters.get(contig, b""))

    def fetch(self, contig: str, start: int, end: int) -> bytes:
        """The letters of contig[start:end]; where they were not read, others in their place."""
        if self.holds(contig, end):
            return self.letters[contig][start:end]
        longest = max(self.letters.values(), key=len)
        at = start % max(1, len(longest) - (end - start))
        return longest[at : at + end - start].ljust(end - start, b"N")
