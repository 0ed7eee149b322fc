"""Which bases are designed: regions of a genome, or the open letters of templates.

Regions that lie so near that a constraint or a window of the network sees both are designed
together, as one `DesignGroup`. All others are independent of one another.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.alphabet import Alphabet
from genodiff.constraints.check import find_judged_conflict, find_violations
from genodiff.constraints.coding import KeepProtein, KeptFrame, NoStop, judge_frames
from genodiff.constraints.composition import GcContent
from genodiff.constraints.constraint import (
    OTHER,
    Constraint,
    DesignSpace,
    KeepBases,
    read_symbols,
)
from genodiff.constraints.design_rules import DesignRules, name_conflict
from genodiff.constraints.layers import Judged, Layers, compile_constraints
from genodiff.constraints.repeats import NoGenomeRepeats
from genodiff.constraints.words import FitPattern
from genodiff.design.contig_line import ContigLine, lay_out, lay_out_round
from genodiff.errors import DataError, UsageError
from genodiff.generate.constrained import ConstrainedPiece
from genodiff.generate.filler import DraftPart
from genodiff.generate.infill import Gap, Template, plan_rounds_of_edges
from genodiff.io.faidx import Genome, check_contigs
from genodiff.io.regions import read_round, says_circular

_LOWER = 0x20
Interval = tuple[int, int]


class TemplateSource:
    """Templates, read as the contigs of a genome; `?` is N. A circular one goes round."""

    def __init__(
        self, templates: Sequence[Template], path: str, circular: Collection[str] = ()
    ) -> None:
        self.path = path
        said = [one.name for one in templates if says_circular(one.description)]
        self.circular = frozenset((*circular, *said))
        self._text = {one.name: one.text.replace(b"?", b"N") for one in templates}
        self.contigs = {name: len(text) for name, text in self._text.items()}
        check_contigs(circular, self.contigs, path)
        digest = hashlib.sha256()
        for name, text in self._text.items():
            digest.update(name.encode() + b"\n" + text + b"\n")
        self.sha256 = digest.hexdigest()

    def fetch(self, contig: str, start: int, end: int) -> bytes:
        """The letters of an interval, 0-based and half-open."""
        text = self._text[contig]
        if contig in self.circular:
            return read_round(lambda a, b: text[a:b], len(text), start, end)
        return text[start:end]


Source = Genome | TemplateSource


class DesignGroup(NamedTuple):
    """Regions of a contig that are designed together, and the windows that fill them.

    Places are those of the contig's `ContigLine`.
    """

    contig: str
    regions: list[Interval]
    rounds: list[Interval]
    start: int
    end: int
    """The letters that the network and the constraints look at."""

    @property
    def windows(self) -> list[Interval]:
        """The rounds from its own start on."""
        return [(start - self.start, end - self.start) for start, end in self.rounds]


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
        asked: dict[str, list[Interval]] = {}
        whole = [Gap(name, 0, n) for name, n in source.contigs.items()]
        for gap in whole if gaps is None else gaps:
            asked.setdefault(gap.contig, []).append((gap.start, gap.end))
        refuse_idle_places(rules, asked, source)
        named = [name for name in source.contigs if name in asked]
        self.lines = {name: self._lay_out(name, asked[name]) for name in named}
        self._rules: dict[str, list[Any]] = {}
        for name, line in self.lines.items():
            self._rules[name] = [one for rule in rules.of(name) for one in line.copy(rule)]
        for name, line in self.lines.items():
            frames = self._read_frames(line)
            judge_frames(frames, source.path, name, line.name, allow_stops=rules.allow_stops)
        self.groups: list[DesignGroup] = []
        for line in self.lines.values():
            size = max(1, line.length)
            self.groups += sorted(self._group(line), key=lambda one: one.regions[0][0] % size)

    def _lay_out(self, contig: str, gaps: Sequence[Interval]) -> ContigLine:
        length = self.source.contigs[contig]
        if contig not in self.source.circular or not length:
            return lay_out(contig, length, gaps)

        def may_change(inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
            free = inside.copy()
            if self._whole:
                free &= read_symbols(self.source.fetch(contig, 0, length)) == OTHER
            for start, end in _list_kept(self.rules.of(contig)):
                free[np.arange(start, end) % length] = False
            return free

        return lay_out_round(contig, length, gaps, may_change)

    def is_free(self, contig: str, start: int, end: int) -> NDArray[np.bool_]:
        """Which bases of an interval of a contig's line may change."""
        line = self.lines[contig]
        if line.free is not None:
            return line.free[np.arange(start, end) % line.length]
        if self._whole:
            free = read_symbols(self.source.fetch(contig, start, end)) == OTHER
        else:
            free = np.zeros(end - start, bool)
            for a, b in line.regions:
                free[max(0, a - start) : max(0, b - start)] = True
        for a, b in _list_kept(self._rules[contig]):
            free[max(0, a - start) : max(0, b - start)] = False
        return free

    def _read_frames(self, line: ContigLine) -> Iterator[KeptFrame]:
        """The frames of a contig that constraints are of."""
        for rule in (*self.rules.everywhere.parts(), *self.rules.of(line.contig)):
            if not isinstance(rule, KeepProtein | NoStop):
                continue
            for exons in [rule.exons] if rule.exons else [(one,) for one in line.regions]:
                if sum(b - a for a, b in exons) % 3:
                    continue  # which is refused with a message of its own
                letters = b"".join(self.source.fetch(line.contig, *one) for one in exons)
                free = [self.is_free(line.contig, *one) for one in exons]
                places = np.concatenate([np.arange(a, b) for a, b in exons])
                codes = np.frombuffer(letters, np.uint8)
                yield KeptFrame(rule, codes, places, np.concatenate(free))

    def name(self, group: DesignGroup) -> str:
        """The regions as samtools writes them."""
        return ", ".join(self.lines[group.contig].name(*region) for region in group.regions)

    def space(self, group: DesignGroup) -> DesignSpace:
        """The letters of a group; all of its regions from first to last are judged."""
        letters = self.source.fetch(group.contig, group.start, group.end)
        free = self.is_free(group.contig, group.start, group.end)
        ends = group.regions[0][0] - group.start, group.regions[-1][1] - group.start
        return DesignSpace(letters, free, *ends, offset=group.start)

    def judge(self, group: DesignGroup, space: DesignSpace) -> list[Judged]:
        """What must hold in a group, and where."""
        found: list[Judged] = [(rule, space) for rule in self._rules[group.contig]]
        for start, end in group.regions:
            here = replace(space, start=start - group.start, end=end - group.start)
            if self._whole and (pattern := space.letters.upper().decode("ascii")).strip("ACGT"):
                found.append((FitPattern(pattern, group.start), here))
            for rule in self.rules.everywhere.parts():
                size = self._measure_round(self.lines[group.contig], rule)
                end_round = start - group.start + size
                goes_round = here.end < end_round <= len(space.letters)
                found.append((rule, replace(here, end=end_round) if goes_round else here))
        return found

    def _measure_round(self, line: ContigLine, rule: Constraint) -> int:
        """From the start of a region that is all of a circle, where the last GC window ends."""
        size = rule.window or line.length if isinstance(rule, GcContent) else line.length
        if not line.is_whole_circle or size >= line.length or not isinstance(rule, GcContent):
            return 0
        return (line.length - 1) // rule.step * rule.step + size

    def _measure_open(self, line: ContigLine) -> int:
        """How far beyond the cut of a circle a design must be read that no automaton reads whole.

        0 where its line shows all that may cross the cut.
        """
        if not line.is_circle:
            return 0
        rules = self.rules.everywhere.parts()
        beyond = max([0, *(self._measure_round(line, rule) - line.length for rule in rules)])
        reach = self._reach(line)
        if line.overlap >= reach and line.cut + line.length + beyond <= line.high:
            return 0
        return max(reach, beyond)

    def _reach(self, line: ContigLine) -> int:
        own = [rule.reach for rule in self._rules[line.contig]]
        return max([self.rules.everywhere.reach, 2, self._flank, *own])

    def find_violations(self, group: DesignGroup, before: bytes, after: bytes) -> Iterator[str]:
        """What a design of a group violates, read as a stranger would: no letter is believed."""
        kept = ~self.space(group).free
        old, new = (np.frombuffer(text, np.uint8) for text in (before, after))
        if len(old) != len(new) or (old[kept] != new[kept]).any():
            yield "a kept base has changed"
        yield from self._find_broken(group, before, after)

    def _find_broken(
        self, group: DesignGroup, before: bytes, after: bytes, kind: type = object
    ) -> Iterator[str]:
        """What a design violates of the constraints of a kind."""
        line = self.lines[group.contig]
        if more := self._measure_open(line):
            at, size = line.cut - group.start, line.length
            circles = [np.frombuffer(text, np.uint8)[at : at + size] for text in (before, after)]
            round_it = np.arange(-more, size + more) % size
            before, after = (circle[round_it].tobytes() for circle in circles)
            group = group._replace(start=line.cut - more, end=line.cut + size + more)
        for rule, here in self.judge(group, self.space(group)):
            if isinstance(rule, kind):
                place = here.start, here.end, here.offset
                yield from find_violations(rule, after.decode(), before.decode(), *place)

    def compile(self, group: DesignGroup) -> Layers:
        """The layers of a group. Raises `UsageError` with a minimal conflict, or for its size."""
        space = self.space(group)
        judged = self.judge(group, space)
        try:
            layers = compile_constraints(judged, space, most_states=self.most_states)
            if layers is not None:
                return layers
            conflict = find_judged_conflict(judged, space, most_states=self.most_states)
        except (UsageError, DataError) as fault:
            raise type(fault)(f"{self.name(group)}: {fault.what}", fix=fault.fix) from None
        several = len(group.regions) > 1
        parts = []
        for rule, here in conflict:
            line = self.lines[group.contig]
            where = line.name(here.start + group.start, here.end + group.start)
            parts.append(f"{rule} ({where})" if several else str(rule))
        raise name_conflict(parts, self.name(group))

    def piece(
        self, group: DesignGroup, layers: Layers, number: int, alphabet: Alphabet
    ) -> DraftPart:
        """What the network is to fill, as part of record `number`."""
        space = self.space(group)
        ids = alphabet.encode(space.letters).astype(np.uint8)
        ids[space.free] = alphabet.mask_id
        together = ConstrainedPiece(layers, layers.positions, self._open_check(group, alphabet))
        first = max(0, group.regions[0][0] - self._flank - group.start)
        seen = slice(first, group.regions[-1][1] + self._flank - group.start)
        start = group.start % max(1, self.source.contigs[group.contig])
        return DraftPart(number, start, ids, group.windows, together, seen, group.contig)

    def _open_check(
        self, group: DesignGroup, alphabet: Alphabet
    ) -> Callable[[NDArray[np.uint8]], bool] | None:
        """Whether a design satisfies what no automaton says; None where automata say all.

        That is a repeat of a genome, and whatever crosses the cut of a circle without kept bases
        beside it.
        """
        kind = object if self._measure_open(self.lines[group.contig]) else NoGenomeRepeats
        if not any(isinstance(rule, kind) for rule, _ in self.judge(group, self.space(group))):
            return None
        before = self.space(group).letters

        def accepts(ids: NDArray[np.uint8]) -> bool:
            after = self.fill(group, ids, alphabet)
            return next(self._find_broken(group, before, after, kind), None) is None

        return accepts

    def fill(self, group: DesignGroup, ids: NDArray[np.uint8], alphabet: Alphabet) -> bytes:
        """The letters of a group after its design, in the case of those that stood there."""
        space = self.space(group)
        letters = np.frombuffer(space.letters, np.uint8).copy()
        new = np.frombuffer(alphabet.decode(ids[space.free]).encode("ascii"), np.uint8)
        letters[space.free] = new | (letters[space.free] & _LOWER)
        return letters.tobytes()

    def _group(self, line: ContigLine) -> Iterator[DesignGroup]:
        """The groups of a contig, from left to right."""
        contig, regions, reach = line.contig, line.regions, self._reach(line)
        edges: list[int] = []
        for start, end in regions:
            free = self.is_free(contig, start, end)
            found = np.flatnonzero(np.diff(free.astype(np.int8), prepend=0, append=0))
            edges += (found + start - line.low).tolist()
        window = min(self._window, line.length) if line.is_circle else self._window
        planned = plan_rounds_of_edges(
            edges[::2], edges[1::2], line.high - line.low, window, min(self._stride, window)
        )
        rounds = [(a + line.low, b + line.low) for a, b in planned]
        # Whatever shares a base, or bases within reach of one another, is one group.
        marks = [(a - reach, b + reach) for a, b in regions] + rounds
        marks += [(line.low, line.high)] if self._measure_open(line) else []
        for rule in self._rules[contig]:
            if isinstance(rule, KeepProtein | NoStop) and rule.exons:
                marks += [_frame_of(rule.exons, region) for region in regions]
        merged: list[Interval] = []
        for start, end in sorted(marks):
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], end))
            else:
                merged.append((start, end))
        for low, high in merged:
            some = [r for r in regions if low <= r[0] < high]
            if some:
                inside = [r for r in rounds if low <= r[0] < high]
                yield DesignGroup(contig, some, inside, max(line.low, low), min(high, line.high))


def _list_kept(rules: Sequence[Constraint]) -> list[Interval]:
    return [one.span for one in rules if isinstance(one, KeepBases) and one.span is not None]


def refuse_idle_places(
    rules: DesignRules, asked: Mapping[str, Sequence[Interval]], source: Source
) -> None:
    """Raises `UsageError` for bases to keep, and for frames, of which no region holds a base."""
    flags = {KeepBases: "--keep", KeepProtein: "--protein", NoStop: "--no-stop"}
    for contig, some in rules.on_contig.items():
        gaps, length = asked.get(contig, ()), source.contigs[contig]
        turns = (-length, 0, length) if contig in source.circular else (0,)
        for rule in some:
            span = getattr(rule, "span", None)
            places = [span] if span else list(getattr(rule, "exons", ()))
            moved = [(start + by, end + by) for start, end in places for by in turns]
            if places and not any(a < end and start < b for a, b in gaps for start, end in moved):
                name = Gap(contig, places[0][0], (places[-1][1] - 1) % length + 1).name
                fix = "give the region that it is of, or leave it out"
                raise UsageError(f"{flags[type(rule)]} {name} is outside all regions", fix=fix)


def _frame_of(exons: Sequence[Interval], region: Interval) -> Interval:
    """A region, and the whole codons of a frame that share a base with it."""
    places = np.concatenate([np.arange(a, b) for a, b in exons])[: sum(b - a for a, b in exons)]
    threes = places.reshape(-1, 3)
    touched = threes[((threes >= region[0]) & (threes < region[1])).any(1)]
    low, high = touched.min(initial=region[0]), touched.max(initial=region[1] - 1)
    return int(low), int(high) + 1
