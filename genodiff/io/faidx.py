"""Random access to a FASTA file by contig and range, through pyfaidx.

A `.fai` beside the file is never read and never written, because a stale one gives wrong DNA
without an error. `fasta_index` keeps its own index, and uses it only if it belongs to the file as
it is now. A store (`data/store.py`) holds ids for the network. A `Genome` gives the letters as the
user wrote them, from the user's own file where it can be read in place.
"""

import logging
import os
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Self

import pyfaidx

from genodiff.errors import DataError
from genodiff.io.fasta import scan_records
from genodiff.io.fasta_index import ContigPlace, FastaIndex, has_index, open_index, stamp_file
from genodiff.io.input_file import is_cut, is_planning, open_input
from genodiff.io.regions import read_round, say_linear, says_circular, suggest_contig

_log = logging.getLogger("genodiff")


class _OpenContigs(dict[str, int]):
    """Contigs of a genome of which only the first are known: any other name is one of the rest."""

    rest = 0

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and ":" not in name)

    def __missing__(self, name: str) -> int:
        return self.rest

    def get(self, name: str, default: object = None) -> int:  # type: ignore[override]
        return self[name]


class GenomeHead:
    """The first contigs of a FASTA, a `share` of it; the last one stands for all the rest."""

    def __init__(self, path: str) -> None:
        self.letters: dict[str, bytes] = {}
        self.descriptions: dict[str, str] = {}
        with open_input(path) as source:
            size, name = source.stat.st_size, ""
            for header, letters in scan_records(source):
                name, pieces, cut = header.name, list[bytes](), False
                self.descriptions |= {name: header.description} if header.description else {}
                for piece in letters:
                    pieces.append(piece)
                    if cut := is_cut(source):
                        break
                self.letters[name] = b"".join(pieces)
                if cut:
                    break
            self.share = min(1.0, source.size / size) if size else 1.0
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


_AHEAD = 1 << 14  # letters that a small request reads at once: neighbours are asked for next


class _Stretch(NamedTuple):
    """contig[start : start + len(letters)], as last read."""

    contig: str
    start: int
    letters: bytes


class Genome:
    """Contigs of a FASTA file by name and range; safe with threads, fork and pickle.

    `contigs` gives the length of each contig, `descriptions` what its header says after its name,
    and `circular` those that go round; `sha256` is the hash of the file. A plan
    of a file without an index has its beginning in memory, in `head`, and no hash.
    """

    def __init__(
        self, path: str | Path, *, goes_round: bool = False, circular: Collection[str] = ()
    ) -> None:
        """Open `path`, and index it if needed. Raises `DataError` for a file that is not FASTA.

        A caller that `goes_round` reads circular contigs across their origin; of any other it is
        said that it does not. `circular` are contigs whose headers do not say that they are.
        """
        self.path = str(path)
        self.sha256 = ""
        self.contigs: dict[str, int] = {}
        self.descriptions: dict[str, str] = {}
        self._open()
        check_contigs(circular, self.contigs, self.path)
        said = (name for name, text in self.descriptions.items() if says_circular(text))
        self.circular = frozenset((*circular, *said))
        self._goes_round = goes_round
        if not goes_round:
            say_linear(self.path, sorted(self.circular))

    def _open(self) -> None:
        self._kept = ExitStack()
        self._pid = os.getpid()
        self._held = _Stretch("", 0, b"")
        self.head = GenomeHead(self.path) if is_planning() and not has_index(self.path) else None
        if self.head is not None:
            self.contigs, self.descriptions = self.head.contigs, self.head.descriptions
            return
        try:
            with open_index(self.path, self._kept) as index:
                self._faidx, self._stamp = _open_faidx(self.path, index)
            self._kept.callback(self._faidx.close)
        except BaseException:
            self._kept.close()
            raise
        self.sha256 = index.sha256
        self.contigs = {name: place.length for name, place in index.places.items()}
        self.descriptions = index.descriptions

    def fetch(self, contig: str, start: int, end: int) -> bytes:
        """The letters of contig[start:end] (0-based, half-open), in their own case.

        Of a caller that `goes_round`, an interval of a circular contig may start before 0 and end
        beyond its last base. Raises `DataError` for an unknown contig, a range outside it, or a
        file that has changed since it was opened.
        """
        if self._pid != os.getpid() and self.head is None:
            self._open()  # parent and child of a fork share the file position
        length = self.contigs.get(contig)
        if length is None:
            check_contigs([contig], self.contigs, self.path)
            length = 0
        beyond = start < 0 or end > length
        if beyond and self._goes_round and contig in self.circular and length:
            return read_round(lambda a, b: self.fetch(contig, a, b), length, start, end)
        if not 0 <= start <= end <= length:
            what = f"{start}-{end} (0-based) is not within {contig} (length {length})"
            raise DataError(what, file=self.path, fix="give a range within the contig")
        if start == end:
            return b""
        if self.head is not None:
            return self.head.fetch(contig, start, end)
        held = self._held  # one value, replaced as a whole: threads may race for it
        known = held.contig == contig and held.start <= start
        if not known or end > held.start + len(held.letters):
            last = max(end, min(start + _AHEAD, length))
            letters: str = self._faidx.fetch(contig, start + 1, last)
            held = _Stretch(contig, start, letters.encode("latin-1"))
            if len(held.letters) != last - start:
                raise self._changed()
            self._held = held if last - start <= _AHEAD else self._held
        if stamp_file(os.fstat(self._faidx.file.fileno()))[:2] != self._stamp[:2]:
            raise self._changed()
        return held.letters[start - held.start : end - held.start]

    def _changed(self) -> DataError:
        fix = "restore the old file, or start again"
        return DataError("changed while in use", file=self.path, fix=fix)

    def close(self) -> None:
        """Close the file. `fetch` does not work afterwards."""
        self._kept.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        state = {"path": self.path, "sha256": self.sha256, "circular": self.circular}
        return {**state, "goes_round": self._goes_round}

    def __setstate__(self, state: dict[str, Any]) -> None:
        path, circular = state["path"], state["circular"]
        self.__init__(path, goes_round=True, circular=circular)  # type: ignore[misc]
        self._goes_round = state["goes_round"]  # what ends at an origin was said when it was opened
        if self.sha256 != state["sha256"]:
            raise self._changed()


def check_contigs(names: Collection[str], contigs: dict[str, int], path: str) -> None:
    """Raises `DataError` for the name of no contig of a file."""
    for name in names:
        if name not in contigs:
            raise DataError(f"no contig '{name}'", file=path, fix=suggest_contig(name, contigs))


class _Faidx(pyfaidx.Faidx):
    """pyfaidx with an index given in memory, not read from a file."""

    def __init__(self, path: str, places: dict[str, ContigPlace]) -> None:
        self._places = places
        nowhere = os.path.join(os.devnull, "none")
        options = {"as_raw": True, "strict_bounds": True, "rebuild": False, "build_index": False}
        super().__init__(path, indexname=nowhere, **options)

    def read_fai(self) -> None:
        for name, place in self._places.items():
            self.index[name] = pyfaidx.IndexRecord(*place, place.offset, None)


def _open_faidx(path: str, index: FastaIndex) -> tuple[_Faidx, tuple[int, ...]]:
    """Open the file or its copy with pyfaidx; return the stamp of the opened file too."""
    try:
        faidx = _Faidx(index.file, index.places)
    except (OSError, pyfaidx.FastaNotFoundError):
        what, fix = "disappeared while it was opened", "restore the file"
        raise DataError(what, file=path, fix=fix) from None
    stamp = stamp_file(os.fstat(faidx.file.fileno()))
    if stamp != index.stamp:
        faidx.close()
        fix = "wait until it is complete, then start again"
        raise DataError("changed while it was opened", file=path, fix=fix)
    return faidx, stamp
