"""Reading frames that are kept, read before anything is designed: is this the frame of a gene?

A frame of the wrong strand or phase, or with an intron, holds stop codons. To keep it is to keep
nothing that anybody meant, so it is refused unless it is asked for. One stop at its end is right.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import reverse_complement
from genodiff.constraints.coding import KeepProtein, NoStop, codes_for, read_codon
from genodiff.errors import DataError, UsageError

_STRANDS = {1: "forward", -1: "reverse"}


class KeptFrame(NamedTuple):
    """A frame's letters (n,) from left to right, their places in the contig, and its rule."""

    rule: KeepProtein | NoStop
    letters: NDArray[np.uint8]
    places: NDArray[np.int64]
    free: NDArray[np.bool_]

    def read_codons(self) -> list[str]:
        """Its codons in the order of the protein."""
        text = self.letters.tobytes().decode("ascii").upper()
        read = text if self.rule.strand == 1 else str(reverse_complement(text))
        return [read[i : i + 3] for i in range(0, len(read), 3)]

    def list_contradictions(self) -> list[tuple[int, str, str]]:
        """(number, codon, amino acid) of kept codons that do not code for the protein given."""
        free = np.any(self.free.reshape(-1, 3), axis=1)[:: self.rule.strand].tolist()
        wanted = getattr(self.rule, "protein", None) or ""
        return [
            (i, codon, amino)
            for i, (codon, amino) in enumerate(
                zip(self.read_codons(), wanted.upper(), strict=False)
            )
            if not free[i] and not codes_for(codon, amino, self.rule.table)
        ]

    def list_stops(self) -> list[int]:
        """The numbers of its stop codons in the order of the protein, but for one at the end.

        Of a frame that is to be without stops only codons that are kept as they are count.
        """
        letters = self.letters.copy()
        if isinstance(self.rule, NoStop):
            letters[np.repeat(self.free.reshape(-1, 3).any(1), 3)] = ord("N")
        return find_stops(letters.tobytes().decode("ascii"), self.rule.strand, self.rule.table)

    def place(self, number: int) -> int:
        """Where a codon begins on the contig: its leftmost base, from 1."""
        left = number if self.rule.strand == 1 else len(self.letters) // 3 - 1 - number
        return int(self.places[3 * left]) + 1

    def suggest(self) -> tuple[str, str]:
        """Which frame of these letters is open, and what to do."""
        text, table = self.letters.tobytes().decode("ascii"), self.rule.table
        own = self.rule.strand
        for strand, skip in [(-own, 0), *((s, k) for s in (own, -own) for k in (1, 2))]:
            part = text[skip:] if strand == 1 else text[: len(text) - skip]
            part = part[: len(part) // 3 * 3] if strand == 1 else part[len(part) % 3 :]
            if part and not find_stops(part, strand, table):
                if not skip:
                    return f"the {_STRANDS[strand]} frame is open", "give that strand"
                which = f"the {_STRANDS[strand]} frame from its base {skip + 1} on is open"
                return which, "give the region of that frame"
        return "none of its six frames is open", "give the exons alone, or another --genetic-code"


def find_stops(text: str, strand: int, table: int) -> list[int]:
    """The numbers of the stop codons of a frame from its first codon on, the last codon left out.

    >>> find_stops("ATGTAAGCTTAG", 1, 1)
    [1]
    """
    read = text.upper() if strand == 1 else str(reverse_complement(text.upper()))
    codons = [read[i : i + 3] for i in range(0, len(read) - 5, 3)]
    return [i for i, codon in enumerate(codons) if read_codon(codon, table) == ("", True)]


def judge_frames(
    frames: Iterator[KeptFrame],
    path: str,
    contig: str,
    name: Callable[[int, int], str],
    *,
    allow_stops: bool,
) -> None:
    """Raises `DataError` for the first frame that holds a stop codon before its end.

    Raises `UsageError` where kept codons contradict the protein that is given for a frame.
    """
    for frame in frames:
        for number, codon, amino in frame.list_contradictions():
            what = f"the codon {codon} at base {frame.place(number)} is fixed and does not code for"
            fix = "allow it to change, or give another protein"
            raise UsageError(f"{what} {amino}", file=path, record=contig, fix=fix)
        given = getattr(frame.rule, "protein", None) is not None
        if not (allow_stops or given) and (stops := frame.list_stops()):
            n = "1 stop codon" if len(stops) == 1 else f"{len(stops)} stop codons"
            flag = "--protein" if isinstance(frame.rule, KeepProtein) else "--no-stop"
            where = name(int(frame.places[0]), int(frame.places[-1]) + 1)
            which, fix = frame.suggest()
            raise DataError(
                f"the {_STRANDS[frame.rule.strand]} frame {where} of {flag} holds {n} before its "
                f"end, the first at base {frame.place(stops[0])} (codon {stops[0] + 1} of "
                f"{len(frame.places) // 3}); {which}",
                file=path,
                record=contig,
                fix=f"{fix}, or --allow-stops to take the frame as it is",
            )
