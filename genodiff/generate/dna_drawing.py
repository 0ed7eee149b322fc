"""DNA that is drawn: new sequences, templates whose gaps are filled, and regions of a genome.

Of regions the whole genome is written again, or the regions alone.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.diffusion.registries import SAMPLERS
from genodiff.errors import UsageError
from genodiff.generate.block_reading import Ids
from genodiff.generate.filler import DraftPart, Sample, refuse_after_gap
from genodiff.generate.guiding import Guiding
from genodiff.generate.infill import Gap, Stretch, Template, merge_gaps, split_contig
from genodiff.generate.output_file import SampleFile
from genodiff.generate.sample import (
    Drawing,
    Planned,
    choose_batch_size,
    choose_stride,
    find_block,
    name_filling,
)
from genodiff.generate.sampling import LONG_STEPS, Sampling
from genodiff.io.faidx import Genome
from genodiff.io.fasta import Record
from genodiff.io.fasta_writer import write_long_records
from genodiff.io.genbank_writer import Mark, mark_changes
from genodiff.runs.trained_model import TrainedModel


class _Filled(NamedTuple):
    """A record's letters, own description, and which of its bases are drawn."""

    text: bytes
    description: str
    drawn: NDArray[np.bool_]


class DnaDrawing(Drawing):
    """DNA sequences of `length` bases, by default the trained length, or `templates` filled."""

    def __init__(
        self,
        model: TrainedModel,
        how: Sampling,
        n: int,
        *,
        length: int | None = None,
        templates: Sequence[Template] | None = None,
        guiding: Guiding | None = None,
        sources: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(model, how, n, sources)
        if guiding is not None and self.how.memory == "novel":
            what = "--memory novel draws records again, which --guidance cannot"
            raise UsageError(what, fix="give --memory on")
        if self.how.batch_size is None and templates is None:
            self.how = replace(self.how, batch_size=choose_batch_size(model, length))
        self.guiding, self.templates = guiding, templates
        self.length = length or model.config.data.seq_len
        grows = templates is None and self.length > model.config.data.seq_len
        in_steps = model.objective.kind == "masked" and SAMPLERS[str(self.how.sampler)].uses_steps
        if grows and in_steps and guiding is None and self.how.steps == "auto":
            self.how = replace(self.how, steps=LONG_STEPS)
        self.lengths = [self.length] if templates is None else [len(t.text) for t in templates]

    def describe(self) -> Any:
        drafts: Any = self.lengths
        if self.templates is not None:
            texts = ((t, hashlib.sha256(t.text).hexdigest()) for t in self.templates)
            drafts = [[t.name, t.description, digest] for t, digest in texts]
        return drafts if self.guiding is None else [drafts, self.guiding.describe()]

    def drafts(self) -> Iterable[Ids]:
        if self.templates is None:
            return [np.full(self.length, self.model.alphabet.mask_id, np.uint8)]
        return (template.ids(self.model.alphabet) for template in self.templates)

    def name(self, number: int) -> str:
        if self.templates is None:
            return super().name(number)
        return name_filling(self.templates[number // self.n].name, self.n, number)

    def read(self, sample: Sample) -> _Filled:
        """A sample in letters."""
        alphabet = self.model.alphabet
        if self.templates is None:
            text = alphabet.decode(sample.ids).encode("ascii")
            return _Filled(text, "", np.ones(len(text), np.bool_))
        template = self.templates[sample.number // self.n]
        text = template.filled(sample.ids, alphabet)
        return _Filled(text, template.description, template.gaps)

    def write(
        self, out: SampleFile, samples: Iterator[Sample], seed: int, request: str
    ) -> dict[str, Any]:
        entries: list[dict[str, Any]] = []
        with out.open() as file:
            out.write_records(file, self._records(samples, seed, entries, out.mark))
            out.screen()
        told = self.tell(seed, entries)
        if self.memory is not None and self.templates is None:
            matches = [(entry["train_match"] or {"length": 0})["length"] for entry in entries]
            told["train_matches"] = self.memory.compare(matches, self.length)
        return told

    def _records(
        self, samples: Iterator[Sample], seed: int, entries: list[dict[str, Any]], mark: str
    ) -> Iterator[tuple[Record, list[Mark]]]:
        for sample in samples:
            name, filled = self.name(sample.number), self.read(sample)
            entry: dict[str, Any] = {"name": name, "length": len(sample.ids), "nfe": sample.nfe}
            if sample.calls is not None:
                entry["oracle_calls"] = sample.calls
            if sample.log_z is not None:
                entry["log_z"] = sample.log_z
            if self.templates is not None:
                entry["filled"] = int(filled.drawn.sum())
            ours = self.describe_record(seed, len(filled.text), sample.nfe)
            if self.memory is not None:
                entry |= self.memory.describe_record(sample.ids, filled.drawn)
                ours += f" train_match={(entry['train_match'] or {'length': 0})['length']}"
            entries.append(entry)
            if self.guiding is not None:
                ours += f" guidance={self.guiding.name} strength={self.guiding.strength:g}"
            # What holds no gap is not ours: its header stays as it is.
            about = f"{ours}{mark} {filled.description}".rstrip()
            if not entry.get("filled", 1):
                about = filled.description
            before = np.where(filled.drawn, ord("N"), np.frombuffer(filled.text, np.uint8))
            marks = [] if self.templates is None else mark_changes(before.tobytes(), filled.text)
            yield Record(name, about, filled.text, 0), marks


_CHUNK = 1 << 20
Patches = list[tuple[int, bytes]]
"""(start, letters) of what was filled on a contig, from left to right."""


class _Written(NamedTuple):
    """What is said of a file: of its records, and the evaluations of each filling."""

    seed: int
    mark: str
    entries: list[dict[str, Any]]
    spent: list[int]


class GapDrawing(Drawing):
    """`n` fillings of regions of a genome."""

    genome: Genome
    is_whole = False

    def __init__(
        self,
        model: TrainedModel,
        how: Sampling,
        n: int,
        genome: Genome,
        gaps: Sequence[Gap],
        *,
        only_filled: bool = False,
        sources: dict[str, Any] | None = None,
    ) -> None:
        """Plan the windows. With `only_filled` the regions alone are written."""
        super().__init__(model, how, n, sources)
        if model.objective.kind == "causal":
            raise refuse_after_gap(model)
        self.genome, self.given, self.merged = genome, list(gaps), merge_gaps(gaps)
        self.only_filled = only_filled
        if only_filled:
            self.lengths = [gap.end - gap.start for gap in self.given]
        else:
            self.lengths = list(genome.contigs.values())

    def describe(self) -> Any:
        return [self.genome.sha256, self.only_filled, [list(gap) for gap in self.given]]

    def plan(self) -> Iterator[Planned]:
        return ((s.mask(), s.windows) for contig in self.merged for s in self._stretches(contig))

    def pieces(self, first: int) -> Iterator[DraftPart]:
        """What the network is to fill: record i is a filling of a contig, in its stretches."""
        tasks = (
            (i * self.n + copy, stretch)
            for i, contig in enumerate(self.genome.contigs)
            for copy in range(self.n if contig in self.merged else 0)
            for stretch in self._stretches(contig)
        )
        for number, stretch in islice(tasks, first, None):
            yield stretch.piece(number, self.genome, self.model.alphabet)

    def write(
        self, out: SampleFile, samples: Iterator[Sample], seed: int, request: str
    ) -> dict[str, Any]:
        told = _Written(seed, out.mark, [], [])
        with out.open() as file:
            width, zipped = out.line_width, out.zipped
            if self.only_filled:
                out.write_records(file, ((one, []) for one in self._regions(samples, told)))
            else:
                contigs = self._contigs(samples, told)
                write_long_records(file, contigs, line_width=width, zipped=zipped)
            out.screen()
        return {"only_filled": self.only_filled, **self.tell(seed, told.entries, sum(told.spent))}

    def _stretches(self, contig: str) -> Iterator[Stretch]:
        window, stride = self.model.config.data.seq_len, choose_stride(self.model, self.how)
        length, block = self.genome.contigs[contig], find_block(self.model).get("block")
        return split_contig(contig, self.merged.get(contig, ()), length, window, stride, block)

    def _fillings(self, samples: Iterator[Sample]) -> Iterator[tuple[int, str, Patches, int]]:
        """(record number, contig, what was filled, evaluations), of all contigs in order."""
        for i, contig in enumerate(self.genome.contigs):
            for copy in range(self.n):
                patches: Patches = []
                nfe = 0
                for stretch in self._stretches(contig):
                    sample = next(samples)
                    patches += stretch.filled(sample.ids, self.genome, self.model.alphabet)
                    nfe += sample.nfe
                yield i * self.n + copy, contig, patches, nfe

    def _contigs(
        self, samples: Iterator[Sample], told: _Written
    ) -> Iterator[tuple[str, Iterator[bytes]]]:
        """(header, letters in pieces) of each contig."""
        for number, contig, patches, nfe in self._fillings(samples):
            length = self.genome.contigs[contig]
            filled = sum(len(letters) for _, letters in patches)
            name = name_filling(contig, self.n, number)
            told.entries.append({"name": name, "length": length, "nfe": nfe, "filled": filled})
            told.spent.append(nfe)
            ours = self.describe_record(told.seed, length, nfe) + told.mark
            parts = [name, *([ours] if filled else []), self.genome.descriptions.get(contig, "")]
            yield " ".join(parts).rstrip(), self._letters(contig, patches)

    def _letters(self, contig: str, patches: Patches) -> Iterator[bytes]:
        first = 0
        for start, letters in [*patches, (self.genome.contigs[contig], b"")]:
            for at in range(first, start, _CHUNK):
                yield self.genome.fetch(contig, at, min(start, at + _CHUNK))
            yield letters
            first = start + len(letters)

    def _regions(self, samples: Iterator[Sample], told: _Written) -> Iterator[Record]:
        """The regions in the order in which they were given."""
        done: dict[tuple[str, int], tuple[Patches, int]] = {}
        for number, contig, patches, nfe in self._fillings(samples):
            done[contig, number % self.n] = patches, nfe
            told.spent.append(nfe)
        for gap in self.given:
            for copy in range(self.n):
                patches, nfe = done[gap.contig, copy]
                start, letters = patches[bisect_right(patches, gap.start, key=lambda p: p[0]) - 1]
                text = letters[gap.start - start : gap.end - start]
                name = name_filling(gap.name, self.n, copy)
                n = len(text)
                told.entries.append({"name": name, "length": n, "nfe": nfe, "filled": n})
                yield Record(name, self.describe_record(told.seed, n, nfe) + told.mark, text, 0)
