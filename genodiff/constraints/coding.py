"""Constraints on reading frames: the protein kept, no stop codon.

A codon is three positions, which may lie in different exons. Its automaton keeps the bases that it
has read of the codon it is in, also across an intron: 21 states at most.

Frames that are kept are read before anything is designed: is this the frame of a gene? One of the
wrong strand or phase, or with an intron, holds stop codons. To keep it is to keep nothing that
anybody meant, so it is refused unless it is asked for. One stop at its end is right.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from Bio.Data.CodonTable import unambiguous_dna_by_id
from numpy.typing import NDArray

from genodiff.alphabet import reverse_complement
from genodiff.constraints.constraint import (
    BASES,
    DEAD,
    OTHER,
    Automaton,
    Constraint,
    DesignSpace,
    Mask,
    States,
)
from genodiff.errors import DataError, UsageError

Codon = tuple[int, int, int]
"""Positions of the letters of a codon, from left to right whatever the strand."""
Intervals = tuple[tuple[int, int], ...]
Usage = tuple[tuple[str, float], ...]
"""(codon, weight above 0) of all 64 codons."""
CODONS = [a + b + c for a in BASES for b in BASES for c in BASES]


def check_table(table: int) -> None:
    """Raises `UsageError` where NCBI has no genetic code of that number."""
    if table not in unambiguous_dna_by_id:
        known = ", ".join(str(number) for number in sorted(unambiguous_dna_by_id))
        raise UsageError(f"no genetic code {table}", fix=f"NCBI's numbers are {known}")


def read_codon(codon: str, table: int) -> tuple[str, bool]:
    """(amino acid or "", whether it is a stop). Some codes have codons that are both."""
    code = unambiguous_dna_by_id[table]
    return code.forward_table.get(codon, ""), codon in code.stop_codons


class CodonAutomaton(Automaton):
    """Each codon is one of those that its row of `allowed` (n, 4, 4, 4) marks, left to right.

    State 0 has read nothing of a codon, 1 … 4 its first base, 5 … 20 its first two.
    """

    size = 21

    def __init__(
        self, codons: Sequence[Codon], allowed: Mask, usage: NDArray[np.float64] | None = None
    ) -> None:
        """`usage` (4, 4, 4) weighs each codon, left to right, when its last base is read."""
        self._usage, self.weighs = usage, usage is not None
        self.first, self.last = codons[0][0], codons[-1][2] + 1
        self._place = {at: (i, turn) for i, three in enumerate(codons) for turn, at in
                       enumerate(three)}  # fmt: skip
        self._allowed = allowed
        self._second: Mask = np.any(allowed, axis=3)
        self._first: Mask = np.any(allowed, axis=(2, 3))

    def step(self, position: int, states: States) -> States:
        if position not in self._place:
            return np.repeat(states[:, None], 5, 1)
        number, turn = self._place[position]
        found = np.full((len(states), 5), DEAD, np.int64)
        bases = np.arange(OTHER)
        if turn == 0:
            found[:, :OTHER] = np.where(self._first[number], bases + 1, DEAD)
        elif turn == 1:
            before = states - 1
            after = 5 + 4 * before[:, None] + bases
            found[:, :OTHER] = np.where(self._second[number][before], after, DEAD)
        else:
            one, two = np.divmod(states - 5, 4)
            found[:, :OTHER] = np.where(self._allowed[number][one, two], 0, DEAD)
        return found

    def weigh(self, position: int, states: States) -> NDArray[np.float64]:
        found = np.ones((len(states), 5))
        if self._usage is not None and self._place.get(position, (0, 0))[1] == 2:
            one, two = np.divmod(states - 5, 4)
            found[:, :OTHER] = self._usage[one, two]
        return found


@dataclass(frozen=True)
class _ReadingFrame(Constraint):
    """A reading frame; its fields are those of `KeepProtein`."""

    exons: Intervals = ()
    strand: int = 1
    table: int = 1

    def __post_init__(self) -> None:
        check_table(self.table)
        if self.strand not in (1, -1):
            raise UsageError(f"strand {self.strand}", fix="give 1 or -1")
        before = self.exons[0][0] if self.exons else 0
        for start, end in self.exons:
            if not before <= start < end:
                raise UsageError("exons overlap, are empty or not in order", fix="sort them")
            before = end
        _count_codons(self.exons)

    @property
    def reach(self) -> int:
        return 2

    @property
    def place(self) -> str:
        """Where it is, in words."""
        where = ",".join(f"{start + 1}-{end}" for start, end in self.exons)
        other = " on the other strand" if self.strand == -1 else ""
        return f"{' of ' + where if where else ''}{other}"

    def find_codons(self, space: DesignSpace) -> list[tuple[Codon, int]]:
        """The codons that lie within the letters, and their numbers in the protein.

        Raises `UsageError` where the judged interval is the frame and no multiple of three.
        """
        inside = self.exons or ((space.start + space.offset, space.end + space.offset),)
        n = _count_codons(inside)
        places = np.concatenate([np.arange(start, end) for start, end in inside]) - space.offset
        threes, numbers = places.reshape(-1, 3), np.arange(n)[:: self.strand]
        within = (threes[:, 0] >= 0) & (threes[:, 2] < len(space.letters))
        codons = [(int(a), int(b), int(c)) for a, b, c in threes[within]]
        return list(zip(codons, numbers[within].tolist(), strict=True))

    def allow_codons(
        self,
        space: DesignSpace,
        allow: Callable[[Codon, int], Callable[[str], bool]],
        usage: Usage | None = None,
    ) -> list[Automaton]:
        """The automaton of the codons that hold a free position: none where no codon does."""
        read = CODONS if self.strand == 1 else [_turn(codon) for codon in CODONS]
        chosen: list[Codon] = []
        rows: list[Mask] = []
        for three, number in self.find_codons(space):
            if space.free[list(three)].any():
                good = allow(three, number)
                chosen.append(three)
                rows.append(np.array([good(codon) for codon in read]).reshape(4, 4, 4))
        if not chosen:
            return []
        weights = None
        if usage is not None:
            weight = dict(usage)
            weights = np.array([weight[codon] for codon in read]).reshape(4, 4, 4)
        return [CodonAutomaton(chosen, np.stack(rows), weights)]


@dataclass(frozen=True)
class KeepProtein(_ReadingFrame):
    """The frame codes for the same amino acids as before, or for `protein` where one is given.

    `exons` are intervals of the contig, from left to right; () is the judged interval. `strand` is
    1 or −1. `table` is NCBI's number of the genetic code. A first codon that is a start codon stays
    as it is with `keep_start`. `protein` is written as Biopython writes it, with * for a stop.
    With `usage` the law of the designs is weighed by the use of every codon that holds a free base.
    """

    protein: str | None = None
    keep_start: bool = True
    usage: Usage | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        size = 3 * _count_codons(self.exons)
        if self.protein is not None and self.exons and len(self.protein) * 3 != size:
            what = f"a protein of {len(self.protein)} amino acids in a frame of {size} bases"
            raise UsageError(what, fix="give three bases for each")

    def automata(self, space: DesignSpace) -> list[Automaton]:
        n = len(self.find_codons(space))
        if self.protein is not None and not self.exons and len(self.protein) != n:
            what = f"a protein of {len(self.protein)} amino acids for {n} codons"
            raise UsageError(what, fix="give three bases for each")

        def allow(three: Codon, number: int) -> Callable[[str], bool]:
            text = "".join(BASES[s] if s < OTHER else "N" for s in space.symbols[list(three)])
            codon = text if self.strand == 1 else _turn(text)
            if self.protein is not None:
                wanted = self.protein[number].upper()
                return lambda c: codes_for(c, wanted, self.table)
            if "N" in codon:
                what = f"codon {codon} at position {three[0] + space.offset + 1} has no amino acid "
                fix = "give the protein, or a frame of A, C, G and T"
                raise DataError(f"{what}that could be kept", fix=fix)
            starts = unambiguous_dna_by_id[self.table].start_codons
            if not number and self.keep_start and codon in starts:
                return lambda c: c == codon
            found = read_codon(codon, self.table)
            return lambda c: read_codon(c, self.table) == found

        return self.allow_codons(space, allow, self.usage)

    def __str__(self) -> str:
        what = "protein kept" if self.protein is None else "protein given"
        use = "" if self.usage is None else ", codons by their usage"
        return f"{what}{self.place}{use}"


@dataclass(frozen=True)
class NoStop(_ReadingFrame):
    """No stop codon in the frame; exons, strand and table as of `KeepProtein`."""

    def automata(self, space: DesignSpace) -> list[Automaton]:
        stops = unambiguous_dna_by_id[self.table].stop_codons
        return self.allow_codons(space, lambda *_: lambda c: c not in stops)

    def __str__(self) -> str:
        return f"no stop codon{self.place}"


def codes_for(codon: str, wanted: str, table: int) -> bool:
    """Whether a codon codes for an amino acid as Biopython writes it: * a stop, X any."""
    amino, stop = read_codon(codon, table)
    return stop if wanted == "*" else wanted == "X" or amino == wanted


def _turn(text: str) -> str:
    return text.translate(str.maketrans("ACGTN", "TGCAN"))[::-1]


def _count_codons(exons: Intervals) -> int:
    """Raises `UsageError` for what is no multiple of three."""
    size = sum(end - start for start, end in exons)
    if size % 3:
        what = f"a reading frame of {size} bases, which is no multiple of three"
        raise UsageError(what, fix="give whole codons")
    return size // 3


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
