"""The request to design regions under constraints: sequences, and what was changed."""

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.constraints.layers import MOST_STATES, Layers
from genodiff.constraints.rule_words import DesignRules
from genodiff.design.design_regions import Designer, DesignGroup, Source
from genodiff.design.edit_files import Design, EditFiles
from genodiff.domain import DNA
from genodiff.errors import GenodiffError, UsageError
from genodiff.generate.constrained import check_constrained
from genodiff.generate.gaps import Gap
from genodiff.generate.guiding import Guiding
from genodiff.generate.journal import SampleJournal
from genodiff.generate.output import (
    WrittenSamples,
    describe_record,
    finish_samples,
    mark_screened,
    name_filling,
)
from genodiff.generate.output_file import SampleFile, Target
from genodiff.generate.request import SampleRequest
from genodiff.generate.sample import (
    Sample,
    Sampling,
    Workload,
    choose_stride,
    fill_pieces,
    measure_planned_workload,
)
from genodiff.generate.sampling import refuse_novel
from genodiff.io.fasta import Record
from genodiff.io.fasta_writer import write_fasta
from genodiff.runs.model import TrainedModel

_log = logging.getLogger("genodiff")


class RedesignRequest(SampleRequest):
    """`n` designs of each region, written as FASTA."""

    domain = DNA

    def __init__(
        self,
        model: TrainedModel,
        how: Sampling | None = None,
        n: int | None = None,
        *,
        source: Source,
        gaps: Sequence[Gap] | None,
        rules: DesignRules,
        sources: dict[str, Any] | None = None,
        files: EditFiles | None = None,
        line_width: int = 60,
        most_states: int = MOST_STATES,
        guiding: Guiding | None = None,
        flank: int = 0,
    ) -> None:
        """Prove that every group of regions has a design. `gaps` None is for templates.

        With `guiding`, its oracle sees each region and `flank` bases on both sides of it.
        Raises `UsageError` with a minimal conflict, before any evaluation of the network.
        """
        super().__init__(model, how, n, True)
        check_constrained(self.how)
        refuse_novel(self.how)
        self.source, self.files, self.line_width = source, files or EditFiles(), line_width
        self.sources = sources or {}
        window, stride = model.config.data.seq_len, choose_stride(model, self.how)
        self.guiding, self.flank = guiding, flank
        self.designer = Designer(source, gaps, rules, window, stride, most_states, flank)
        self.lengths = [b - a for group in self.designer.groups for a, b in group.regions]
        self._held: tuple[DesignGroup, Layers] | None = None
        self.states = sum(self._compile(group).states for group in self.designer.groups)
        self._numbers = {name: i for i, name in enumerate(source.contigs)}

    def describe(self) -> Any:
        rules = self.designer.rules
        places = {name: [repr(one) for one in some] for name, some in rules.on_contig.items()}
        return [
            self.source.sha256,
            [[group.contig, group.regions] for group in self.designer.groups],
            [repr(one) for one in rules.everywhere.parts()],
            places,
            self.files.describe(),
            *([] if not self.source.circular else [sorted(self.source.circular)]),
            *([] if self.guiding is None else [self.guiding.describe(), self.flank]),
        ]

    def _find_genome(self) -> Source:
        return self.source

    def gaps(self) -> Iterable[NDArray[np.bool_]]:
        return (self.designer.space(group).free for group in self.designer.groups)

    def workload(self) -> Workload:
        """The network calls that one design of each region needs."""
        planned = (
            (
                self.designer.space(group).free,
                [(a - group.start, b - group.start) for a, b in group.rounds],
            )
            for group in self.designer.groups
        )
        return measure_planned_workload(self.model, planned, how=self.how)

    def write(
        self,
        target: Target,
        seed: int,
        *,
        sidecar: str | Path | None = None,
        journal: SampleJournal | None = None,
        tick: Callable[[int], None] | None = None,
    ) -> WrittenSamples:
        model, how = self.model, self.how

        def draw(first: int) -> Iterable[Sample]:
            return self._draw(seed, first, tick)

        samples = iter(draw(0) if journal is None else journal.pass_through(draw, tick))
        entries: list[dict[str, Any]] = []
        spent: list[int] = []
        out = SampleFile(target, sidecar, journal, self.screener)
        with ExitStack() as stack:
            file = stack.enter_context(out.open())
            edits = self.files.open(stack, self.source, self.n, self.digest(seed))
            records = self._records(samples, seed, entries, spent, edits.add)
            write_fasta(file, records, line_width=self.line_width or sys.maxsize, zipped=out.zipped)
            edits.finish()
            out.screen()
        every = self.designer.rules.everywhere.parts()
        about = {
            **self.sources,
            "constraints": [str(one) for one in every]
            + [
                f"{one} ({contig})"
                for contig, some in self.designer.rules.on_contig.items()
                for one in some
            ],
            "edits": self.files.seal(),
        }
        if circles := [line.contig for line in self.designer.lines.values() if line.is_circle]:
            about["circular"] = circles
        if self.guiding is not None:
            about |= self.guiding.describe() | {"oracle_flank": self.flank}
        about |= {} if self.memory is None else self.memory.describe()
        return finish_samples(out, model, how, seed, entries, about, sum(spent))

    def draw_designs(self, seed: int) -> Iterator[tuple[DesignGroup, int, bytes]]:
        """(group, number of the design, the group's letters), of all groups in order."""
        samples = iter(self._draw(seed, 0, None))
        for group in self.designer.groups:
            before = self.source.fetch(group.contig, group.start, group.end)
            for copy in range(self.n):
                after = self.designer.fill(group, next(samples).ids, self.model.alphabet)
                self._check(group, before, after)
                yield group, copy, after

    def _draw(self, seed: int, first: int, tick: Callable[[int], None] | None) -> Iterator[Sample]:
        """The designs from number `first` on: those of a group, then those of the next."""
        tasks = ((group, copy) for group in self.designer.groups for copy in range(self.n))
        pieces = (
            self.designer.piece(
                group,
                self._compile(group),
                self._numbers[group.contig] * self.n + copy,
                self.model.alphabet,
            )
            for group, copy in islice(tasks, first, None)
        )
        return fill_pieces(
            self.model, pieces, how=self.how, seed=seed, tick=tick, first=first,
            guiding=self.guiding, memory=self.memory,
        )  # fmt: skip

    def _records(
        self,
        samples: Iterator[Sample],
        seed: int,
        entries: list[dict[str, Any]],
        spent: list[int],
        note: Callable[[DesignGroup, Callable[[int, int], str], bytes, list[Design]], None],
    ) -> Iterator[Record]:
        for group in self.designer.groups:
            before = self.source.fetch(group.contig, group.start, group.end)
            designs: list[Design] = []
            for copy in range(self.n):
                sample = next(samples)
                spent.append(sample.nfe)
                after = self.designer.fill(group, sample.ids, self.model.alphabet)
                self._check(group, before, after)
                designs.append(Design(copy, after))
                told = describe_record(self.model, self.how, seed, 0, sample.nfe).partition(" ")[2]
                guided: dict[str, Any] = {}
                if self.guiding is not None:
                    told += f" guidance={self.guiding.name} strength={self.guiding.strength:g}"
                    guided = {"oracle_calls": sample.calls}
                    guided |= {} if sample.log_z is None else {"log_z": sample.log_z}
                told += mark_screened(self.screener)
                for start, end in group.regions:
                    name = name_filling(self._name(group.contig, start, end), self.n, copy)
                    a, b = start - group.start, end - group.start
                    counts = _count_edits(before[a:b], after[a:b])
                    entries.append(
                        {
                            "name": name,
                            "length": end - start,
                            "nfe": sample.nfe,
                            **counts._asdict(),
                            "constraints_met": True,
                            **guided,
                        }
                    )
                    about = (
                        f"length={end - start} filled={counts.filled} edits={counts.edits} {told}"
                    )
                    yield Record(name, about, after[a:b], 0)
            note(group, self.designer.lines[group.contig].name, before, designs)

    def _name(self, contig: str, start: int, end: int) -> str:
        whole = (start, end) == (0, self.source.contigs[contig])
        return contig if whole else self.designer.lines[contig].name(start, end)

    def _check(self, group: DesignGroup, before: bytes, after: bytes) -> None:
        for violation in self.designer.find_violations(group, before, after):
            what = f"{self.designer.name(group)}: a design violates {violation}"
            raise GenodiffError(what, fix="report this as a bug")

    def _compile(self, group: DesignGroup) -> Layers:
        """The layers of a group; those of the last one are kept."""
        if self._held is None or self._held[0] != group:
            self._held = (group, self.designer.compile(group))
        return self._held[1]


class EditCounts(NamedTuple):
    """Letters of a design that were no base before, and bases that were another."""

    filled: int
    edits: int


def _count_edits(before: bytes, after: bytes) -> EditCounts:
    pairs = [(a, b) for a, b in zip(before.upper(), after.upper(), strict=True) if a != b]
    edits = sum(a in b"ACGT" for a, _ in pairs)
    return EditCounts(len(pairs) - edits, edits)


def refuse_empty_regions(designer: Designer) -> None:
    """Raises `UsageError` where nothing may change."""
    if not any(designer.space(group).free.any() for group in designer.groups):
        raise UsageError(
            "every base of the regions is kept", fix="keep fewer bases, or give other regions"
        )
