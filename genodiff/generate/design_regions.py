"""Which bases are designed: regions of a genome, or the open letters of templates.

Regions that lie so near that a constraint or a window of the network sees both are designed
together, as one `DesignGroup`. All others are independent of one another.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import Alphabet
from genodiff.constraints.bases import FitPattern, KeepBases
from genodiff.constraints.check import find_violations
from genodiff.constraints.coding import KeepProtein, NoStop
from genodiff.constraints.conflict import find_judged_conflict
from genodiff.constraints.layers import Judged, Layers, compile_judged
from genodiff.constraints.repeats import NoGenomeRepeats
from genodiff.constraints.rule_words import DesignRules, name_conflict
from genodiff.constraints.space import OTHER, DesignSpace, read_symbols
from genodiff.errors import DataError, UsageError
from genodiff.generate.constrained import ConstrainedPiece
from genodiff.generate.filler import DraftPart
from genodiff.generate.gaps import Gap, merge_gaps
from genodiff.generate.infill import Template, plan_rounds_of_edges
from genodiff.io.faidx import Genome

_LOWER = 0x20
Interval = tuple[int, int]


class TemplateSource:
    """Templates, read as the contigs of a genome; `?` is N."""

    def __init__(self, templates: Sequence[Template], path: str) -> None:
        self.path = path
        self._text = {one.name: one.text.replace(b"?", b"N") for one in templates}
        self.contigs = {name: len(text) for name, text in self._text.items()}
        digest = hashlib.sha256()
        for name, text in self._text.items():
            digest.update(name.encode() + b"\n" + text + b"\n")
        self.sha256 = digest.hexdigest()

    def fetch(self, contig: str, start: int, end: int) -> bytes:
        """The letters of an interval, 0-based and half-open."""
        return self._text[contig][start:end]


Source = Genome | TemplateSource


class DesignGroup(NamedTuple):
    """Regions of a contig that are designed together, and the windows that fill them."""

    contig: str
    regions: list[Interval]
    rounds: list[Interval]
    start: int
    end: int
    """The letters that the network and the constraints look at."""

    @property
    def name(self) -> str:
        """The regions as samtools writes them."""
        return ", ".join(Gap(self.contig, *region).name for region in self.regions)


class Designer:
    """The groups of a request, and what must hold in each."""

    def __init__(
        self,
        source: Source,
        gaps: Sequence[Gap] | None,
        rules: DesignRules,
        window: int,
        stride: int,
        most_states: int,
        flank: int = 0,
    ) -> None:
        """`gaps` None designs the open letters of every contig, and judges all of it.

        An oracle sees a group's regions from first to last, and `flank` bases on each side. Regions
        so near that it sees both are one group.
        """
        self.source, self.rules, self.most_states = source, rules, most_states
        self._whole = gaps is None
        self._window, self._stride, self._flank = window, stride, flank
        self.regions: dict[str, list[Interval]] = (
            {name: [(0, length)] for name, length in source.contigs.items()}
            if gaps is None
            else merge_gaps(gaps)
        )
        self.groups = [
            group
            for contig in source.contigs
            if contig in self.regions
            for group in self._group(contig)
        ]

    def is_free(self, contig: str, start: int, end: int) -> NDArray[np.bool_]:
        """Which bases of an interval may change."""
        symbols = read_symbols(self.source.fetch(contig, start, end))
        if self._whole:
            free = symbols == OTHER
        else:
            free = np.zeros(end - start, bool)
            for a, b in self.regions[contig]:
                free[max(0, a - start) : max(0, b - start)] = True
        for rule in self.rules.of(contig):
            if isinstance(rule, KeepBases) and rule.span is not None:
                a, b = rule.span
                free[max(0, a - start) : max(0, b - start)] = False
        return free

    def find_idle(self) -> list[str]:
        """The bases to keep of which no region holds one, as samtools writes them."""
        return [
            Gap(contig, *rule.span).name
            for contig in self.source.contigs
            for rule in self.rules.of(contig)
            if isinstance(rule, KeepBases)
            and rule.span is not None
            and not any(
                a < rule.span[1] and rule.span[0] < b for a, b in self.regions.get(contig, [])
            )
        ]

    def space(self, group: DesignGroup) -> DesignSpace:
        """The letters of a group; all of its regions from first to last are judged."""
        letters = self.source.fetch(group.contig, group.start, group.end)
        free = self.is_free(group.contig, group.start, group.end)
        ends = group.regions[0][0] - group.start, group.regions[-1][1] - group.start
        return DesignSpace(letters, free, *ends, offset=group.start)

    def judge(self, group: DesignGroup, space: DesignSpace) -> list[Judged]:
        """What must hold in a group, and where."""
        found: list[Judged] = [(rule, space) for rule in self.rules.of(group.contig)]
        for start, end in group.regions:
            here = replace(space, start=start - group.start, end=end - group.start)
            if self._whole and (pattern := space.letters.upper().decode("ascii")).strip("ACGT"):
                found.append((FitPattern(pattern, group.start), here))
            found += [(rule, here) for rule in self.rules.everywhere.parts()]
        return found

    def compile(self, group: DesignGroup) -> Layers:
        """The layers of a group. Raises `UsageError` with a minimal conflict, or for its size."""
        space = self.space(group)
        judged = self.judge(group, space)
        try:
            layers = compile_judged(judged, space, most_states=self.most_states)
            if layers is not None:
                return layers
            conflict = find_judged_conflict(judged, space, most_states=self.most_states)
        except (UsageError, DataError) as fault:
            raise type(fault)(f"{group.name}: {fault.what}", fix=fault.fix) from None
        several = len(group.regions) > 1
        parts = []
        for rule, here in conflict:
            where = Gap(group.contig, here.start + group.start, here.end + group.start).name
            parts.append(f"{rule} ({where})" if several else str(rule))
        raise name_conflict(parts, group.name)

    def piece(
        self, group: DesignGroup, layers: Layers, number: int, alphabet: Alphabet
    ) -> DraftPart:
        """What the network is to fill, as part of record `number`."""
        space = self.space(group)
        ids = alphabet.encode(space.letters).astype(np.uint8)
        ids[space.free] = alphabet.mask_id
        inside = [(start - group.start, end - group.start) for start, end in group.rounds]
        together = ConstrainedPiece(layers, layers.positions, self._open_check(group, alphabet))
        first = max(0, group.regions[0][0] - self._flank - group.start)
        seen = slice(first, group.regions[-1][1] + self._flank - group.start)
        return DraftPart(number, group.start, ids, inside, together, seen, group.contig)

    def _open_check(
        self, group: DesignGroup, alphabet: Alphabet
    ) -> Callable[[NDArray[np.uint8]], bool] | None:
        """Whether a design has no repeat of a genome; None where nothing asks."""
        judged = self.judge(group, self.space(group))
        asked = [(rule, here) for rule, here in judged if isinstance(rule, NoGenomeRepeats)]
        if not asked:
            return None

        def accepts(ids: NDArray[np.uint8]) -> bool:
            text = self.fill(group, ids, alphabet).decode("ascii").upper()
            return not any(
                find_violations(rule, text, text, here.start, here.end, here.offset)
                for rule, here in asked
            )

        return accepts

    def fill(self, group: DesignGroup, ids: NDArray[np.uint8], alphabet: Alphabet) -> bytes:
        """The letters of a group after its design, in the case of those that stood there."""
        space = self.space(group)
        letters = np.frombuffer(space.letters, np.uint8).copy()
        new = np.frombuffer(alphabet.decode(ids[space.free]).encode("ascii"), np.uint8)
        letters[space.free] = new | (letters[space.free] & _LOWER)
        return letters.tobytes()

    def _group(self, contig: str) -> Iterator[DesignGroup]:
        """The groups of a contig, from left to right."""
        length = self.source.contigs[contig]
        own = [rule.reach for rule in self.rules.of(contig)]
        reach = max([self.rules.everywhere.reach, 2, self._flank, *own])
        regions = self.regions[contig]
        runs: list[Interval] = []
        for start, end in regions:
            free = self.is_free(contig, start, end)
            edges = np.flatnonzero(np.diff(free.astype(np.int8), prepend=0, append=0)) + start
            runs += list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
        rounds = plan_rounds_of_edges(
            [a for a, _ in runs], [b for _, b in runs], length, self._window, self._stride
        )
        # Whatever shares a base, or bases within reach of one another, is one group.
        marks = [(a - reach, b + reach) for a, b in regions] + list(rounds)
        for rule in self.rules.of(contig):
            if isinstance(rule, KeepProtein | NoStop) and rule.exons:
                marks += [_frame_of(rule.exons, region) for region in regions]
        for low, high in _merge_intervals(marks):
            some = [r for r in regions if low <= r[0] < high]
            if some:
                inside = [r for r in rounds if low <= r[0] < high]
                yield DesignGroup(contig, some, inside, max(0, low), min(high, length))


def _frame_of(exons: Sequence[Interval], region: Interval) -> Interval:
    """A region, and the whole codons of a frame that share a base with it."""
    places = np.concatenate([np.arange(a, b) for a, b in exons])[: sum(b - a for a, b in exons)]
    threes = places.reshape(-1, 3)
    hit = ((threes >= region[0]) & (threes < region[1])).any(1)
    touched = threes[hit]
    if not len(touched):
        return region
    return min(region[0], int(touched.min())), max(region[1], int(touched.max()) + 1)


def _merge_intervals(marks: Sequence[Interval]) -> list[Interval]:
    found: list[Interval] = []
    for start, end in sorted(marks):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found
