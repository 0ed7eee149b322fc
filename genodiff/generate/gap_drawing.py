"""Regions of a genome that are filled: the whole genome again, or the regions alone."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from genodiff.generate.filler import DraftPart, Sample, refuse_after_gap
from genodiff.generate.infill import Gap, Stretch, merge_gaps, split_contig
from genodiff.generate.output_file import SampleFile
from genodiff.generate.sample import Drawing, Planned, choose_stride, find_block, name_filling
from genodiff.generate.sampling import Sampling
from genodiff.io.faidx import Genome
from genodiff.io.fasta import Record
from genodiff.io.fasta_writer import write_long_records
from genodiff.runs.trained_model import TrainedModel

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
