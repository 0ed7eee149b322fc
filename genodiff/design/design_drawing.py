"""Designs of regions under constraints, by one model: sequences, and what was changed.

Beside them a VCF may have a sample for each design, and a BED file the changed bases. Applying
sample i of the VCF to the reference gives design i, for example with `bcftools consensus -s
design1`. A genotype is haploid. A reference letter that is not A, C, G or T is N in the VCF.

A GenBank file has whole designed records. One of a GenBank or EMBL source keeps its features; each
designed region and each run of edits is a feature more. A FASTA source has no annotation to keep.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby, islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from genodiff.constraints.constraint import KeepBases
from genodiff.constraints.design_rules import DesignRules
from genodiff.constraints.layers import MOST_STATES, Layers
from genodiff.design.design_regions import Designer, DesignGroup, Source
from genodiff.design.request import REQUEST
from genodiff.errors import GenodiffError, UsageError
from genodiff.generate.constrained import check_constrained
from genodiff.generate.filler import DraftPart, Sample
from genodiff.generate.guiding import Guiding
from genodiff.generate.infill import Gap
from genodiff.generate.output_file import SampleFile
from genodiff.generate.sample import Drawing, Planned, choose_stride, name_filling
from genodiff.generate.sampling import Sampling
from genodiff.io.atomic import open_atomic
from genodiff.io.fasta import Record
from genodiff.io.file_kinds import encode_text
from genodiff.io.genbank_writer import Mark, format_genbank, mark_changes, read_annotated
from genodiff.io.target import describe_file, is_stream
from genodiff.runs.trained_model import TrainedModel
from genodiff.version import __version__

_MOST = 50_000_000


Note = Callable[[DesignGroup, Callable[[int, int], str], bytes, Sequence[bytes]], None]
"""What is done with the designs of a group: see `EditWriter.add`."""


class EditFiles(NamedTuple):
    """The names of the files; None is not written."""

    vcf: str | None = None
    bed: str | None = None

    def describe(self) -> list[bool]:
        """Which are written."""
        return [self.vcf is not None, self.bed is not None]

    def open(self, stack: ExitStack, source: Source, n: int, request: str) -> "EditWriter":
        """A writer; the files get their names when `stack` is closed without an error."""
        vcf = None if self.vcf is None else stack.enter_context(open_atomic(self.vcf))
        bed = None if self.bed is None else stack.enter_context(open_atomic(self.bed))
        return EditWriter(vcf, bed, source, n, request)

    def seal(self) -> dict[str, Any]:
        """What the sidecar says of the files."""
        named = {"vcf": self.vcf, "bed": self.bed}
        return {
            kind: {"path": Path(path).name, **describe_file(path)}
            for kind, path in named.items()
            if path is not None and not is_stream(path)
        }


class EditWriter:
    """Writes the edits of one group after the other."""

    def __init__(
        self, vcf: IO[bytes] | None, bed: IO[bytes] | None, source: Source, n: int, request: str
    ) -> None:
        self._vcf, self._bed, self._n, self._source = vcf, bed, n, source
        self._held: list[tuple[int, str]] = []
        self._rows: list[tuple[int, int, str]] = []
        self._contig = ""
        if vcf is not None:
            names = "\t".join(f"design{i + 1}" for i in range(n))
            lines = [
                "##fileformat=VCFv4.3",
                f"##source=genodiff {__version__} redesign",
                f"##reference={Path(source.path).name}",
                f"##{REQUEST}{request}",
                *(f"##contig=<ID={c},length={size}>" for c, size in source.contigs.items()),
                '##FORMAT=<ID=GT,Number=1,Type=String,Description="Allele of the design">',
                f"#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t{names}",
            ]
            vcf.write(encode_text("".join(f"{line}\n" for line in lines)))
        if bed is not None:
            bed.write(f"# {REQUEST}{request}\n".encode())

    def add(
        self,
        group: DesignGroup,
        name: Callable[[int, int], str],
        before: bytes,
        designs: Sequence[bytes],
    ) -> None:
        """The edits of a group, whose letters were `before` and are `designs`.

        `name` gives that of a region.

        Those of a circular contig are held until all of it is there: the VCF stays in order.
        """
        if group.contig != self._contig:
            self.finish()
        self._contig, length = group.contig, self._source.contigs[group.contig]
        old = before.upper().decode("ascii")
        new = [letters.upper().decode("ascii") for letters in designs]
        changed = [{i for i, letter in enumerate(text) if letter != old[i]} for text in new]
        if self._vcf is not None:
            for at in sorted(set().union(*changed)):
                ref = old[at] if old[at] in "ACGT" else "N"
                alts = list(dict.fromkeys(text[at] for text in new if text[at] != old[at]))
                alleles = [old[at], *alts]
                genotypes = [str(alleles.index(text[at])) for text in new]
                place = (group.start + at) % length
                fields = [group.contig, str(place + 1), ".", ref, ",".join(alts)]
                fields += [".", "PASS", ".", "GT", *genotypes]
                self._held.append((place, "\t".join(fields) + "\n"))
        if self._bed is not None:
            for region in group.regions:
                label = name(*region)
                for copy, places in enumerate(changed):
                    inside = [i for i in sorted(places) if region[0] <= i + group.start < region[1]]
                    inside = [(i + group.start) % length for i in inside]
                    for _, run in groupby(enumerate(inside), lambda pair: pair[1] - pair[0]):
                        some = [i for _, i in run]
                        self._rows.append((some[0], some[-1] + 1, f"{label}.{copy + 1}"))
        if group.contig not in self._source.circular:
            self.finish()

    def finish(self) -> None:
        """Write what is held."""
        if self._vcf is not None:
            self._vcf.write("".join(row for _, row in sorted(self._held)).encode())
        if self._bed is not None:
            rows = ("\t".join(map(str, (self._contig, *row))) for row in sorted(self._rows))
            self._bed.write("".join(f"{row}\n" for row in rows).encode())
        self._held, self._rows = [], []


class Constructs:
    """The `n` designs of each contig that has regions, in place."""

    def __init__(self, source: Source, n: int) -> None:
        self._source, self._n = source, n
        self._whole: dict[str, list[bytearray]] = {}
        self._marks: dict[str, list[Mark]] = {}

    def add(
        self,
        group: DesignGroup,
        name: Callable[[int, int], str],
        before: bytes,
        designs: Sequence[bytes],
    ) -> None:
        """Put a group's designs in place; see `EditWriter.add`."""
        contig, size = group.contig, self._source.contigs[group.contig]
        if contig not in self._whole:
            total = size * self._n + sum(sum(map(len, some)) for some in self._whole.values())
            if total > _MOST:
                what = f"GenBank output holds whole records: {total:,} bases, at most {_MOST:,}"
                raise UsageError(what, fix="give --out NAME.fa")
            letters = self._source.fetch(contig, 0, size)
            self._whole[contig] = [bytearray(letters) for _ in range(self._n)]
            self._marks[contig] = []
        for whole, design in zip(self._whole[contig], designs, strict=True):
            put_design(whole, group.start, design)
        for start, end in group.regions:
            about = {"label": f"redesigned {name(start, end)}", "note": "genodiff redesign"}
            start, end = start % size, (end - 1) % size + 1
            spans = [(start, end)] if start < end else [(start, size), (0, end)]
            self._marks[contig] += [Mark(*span, "misc_feature", about) for span in spans]

    def format(self) -> bytes:
        """The GenBank text of all."""
        annotated = read_annotated(self._source.path)
        text = []
        for number, (contig, designs) in enumerate(self._whole.items()):
            before = self._source.fetch(contig, 0, self._source.contigs[contig])
            for copy, design in enumerate(designs):
                name = name_filling(contig, self._n, number * self._n + copy)
                marks = [*self._marks[contig], *mark_changes(before, bytes(design))]
                own = annotated.get(contig)
                circular = contig in self._source.circular
                text.append(
                    format_genbank(name, "", bytes(design), marks, source=own, circular=circular)
                )
        return b"".join(text)


class DesignDrawing(Drawing):
    """`n` designs of each region. Of a file, `files` says where its edits go, `sources` what its
    sidecar says of the files that are read.
    """

    genome: Source
    is_whole = False
    files = EditFiles()

    def __init__(
        self,
        model: TrainedModel,
        how: Sampling,
        n: int,
        source: Source,
        gaps: Sequence[Gap] | None,
        rules: DesignRules,
        *,
        most_states: int | None = None,
        guiding: Guiding | None = None,
        flank: int = 0,
        from_noise: float | None = None,
    ) -> None:
        """Prove that every group of regions has a design. `gaps` None is for templates.

        With `from_noise` a design begins with what stands there, noised to that time.

        With `guiding`, its oracle sees each region and `flank` bases on both sides of it.
        Raises `UsageError` with a minimal conflict, before any evaluation of the network.
        """
        super().__init__(model, how, n)
        self.free = from_noise is not None or model.objective.kind == "uniform"
        if self.free:
            refuse_constraints(model, rules, guiding)
        else:
            check_constrained(self.how)
        self.genome, self.guiding, self.flank = source, guiding, flank
        self.from_noise = from_noise
        window, stride = model.config.data.seq_len, choose_stride(model, self.how)
        most = most_states or MOST_STATES
        self.designer = Designer(source, gaps, rules, window, stride, most, flank)
        self.lengths = [b - a for group in self.designer.groups for a, b in group.regions]
        self._held: tuple[DesignGroup, Layers] | None = None
        self.states = sum(self._compile(group).states for group in self.designer.groups)
        self._numbers = {name: i for i, name in enumerate(source.contigs)}

    def describe(self) -> Any:
        rules, source = self.designer.rules, self.genome
        places = {name: [repr(one) for one in some] for name, some in rules.on_contig.items()}
        return [
            source.sha256,
            [[group.contig, group.regions] for group in self.designer.groups],
            [repr(one) for one in rules.everywhere.parts()],
            places,
            self.files.describe(),
            *([] if not source.circular else [sorted(source.circular)]),
            *([] if self.guiding is None else [self.guiding.describe(), self.flank]),
            *([] if self.from_noise is None else [["from_noise", self.from_noise]]),
        ]

    def plan(self) -> Iterator[Planned]:
        designer = self.designer
        return ((designer.space(group).free, group.windows) for group in designer.groups)

    def pieces(self, first: int) -> Iterator[DraftPart]:
        """The designs of a group, then those of the next."""
        tasks = ((group, copy) for group in self.designer.groups for copy in range(self.n))
        for group, copy in islice(tasks, first, None):
            number = self._numbers[group.contig] * self.n + copy
            layers, alphabet = self._compile(group), self.model.alphabet
            piece = self.designer.piece(group, layers, number, alphabet)
            if self.free:  # its bases are drawn each by itself
                piece = piece._replace(together=None)
            if self.from_noise is not None:
                letters = self.genome.fetch(group.contig, group.start, group.end)
                stood = alphabet.encode(letters).astype(np.uint8)
                piece = piece._replace(stood=stood, from_noise=self.from_noise)
            yield piece

    def read(
        self, samples: Iterator[Sample]
    ) -> Iterator[tuple[DesignGroup, bytes, list[tuple[bytes, Sample]]]]:
        """(group, its letters, what its designs are and how they were drawn), of all in order."""
        for group in self.designer.groups:
            before = self.genome.fetch(group.contig, group.start, group.end)
            designs = []
            for sample in islice(samples, self.n):
                after = self.designer.fill(group, sample.ids, self.model.alphabet)
                for violation in self.designer.find_violations(group, before, after):
                    what = f"{self.designer.name(group)}: a design violates {violation}"
                    raise GenodiffError(what, fix="report this as a bug")
                designs.append((after, sample))
            yield group, before, designs

    def write(
        self, out: SampleFile, samples: Iterator[Sample], seed: int, request: str
    ) -> dict[str, Any]:
        entries: list[dict[str, Any]] = []
        spent: list[int] = []
        with ExitStack() as stack:
            file = stack.enter_context(out.open())
            edits = self.files.open(stack, self.genome, self.n, request)
            notes = [edits.add]
            records = self._records(samples, seed, entries, spent, notes, out.mark)
            if out.is_genbank:
                constructs = Constructs(self.genome, self.n)
                notes.append(constructs.add)
                deque(records, maxlen=0)  # which notes their designs
                file.write(constructs.format())
            else:
                out.write_records(file, ((one, []) for one in records))
            edits.finish()
            out.screen()
        rules = self.designer.rules
        places = [f"{one} ({name})" for name, some in rules.on_contig.items() for one in some]
        told = self.tell(seed, entries, sum(spent)) | {
            "constraints": [*map(str, rules.everywhere.parts()), *places],
            "edits": self.files.seal(),
        }
        if circles := [line.contig for line in self.designer.lines.values() if line.is_circle]:
            told["circular"] = circles
        told |= {} if self.from_noise is None else {"from_noise": self.from_noise}
        return told if self.guiding is None else told | {"oracle_flank": self.flank}

    def _records(
        self,
        samples: Iterator[Sample],
        seed: int,
        entries: list[dict[str, Any]],
        spent: list[int],
        notes: Sequence[Note],
        mark: str,
    ) -> Iterator[Record]:
        for group, before, designs in self.read(samples):
            name_region = self.designer.lines[group.contig].name
            for copy, (after, sample) in enumerate(designs):
                spent.append(sample.nfe)
                told = self.describe_record(seed, 0, sample.nfe).partition(" ")[2]
                guided: dict[str, Any] = {}
                if self.guiding is not None:
                    told += f" guidance={self.guiding.name} strength={self.guiding.strength:g}"
                    guided = {"oracle_calls": sample.calls}
                    guided |= {} if sample.log_z is None else {"log_z": sample.log_z}
                for start, end in group.regions:
                    whole = (start, end) == (0, self.genome.contigs[group.contig])
                    region = group.contig if whole else name_region(start, end)
                    name = name_filling(region, self.n, copy)
                    a, b = start - group.start, end - group.start
                    pairs = zip(before[a:b].upper(), after[a:b].upper(), strict=True)
                    was_base = [old in b"ACGT" for old, new in pairs if old != new]
                    changed = {"length": end - start}
                    changed |= {"filled": was_base.count(False), "edits": sum(was_base)}
                    entry = {"name": name, **changed, "nfe": sample.nfe, "constraints_met": True}
                    entries.append(entry | guided)
                    about = " ".join(f"{key}={value}" for key, value in changed.items())
                    yield Record(name, f"{about} {told}{mark}", after[a:b], 0)
            for note in notes:
                note(group, name_region, before, [after for after, _ in designs])

    def _compile(self, group: DesignGroup) -> Layers:
        """The layers of a group; those of the last one are kept."""
        if self._held is None or self._held[0] != group:
            self._held = (group, self.designer.compile(group))
        return self._held[1]


def put_design(whole: bytearray, start: int, design: bytes) -> None:
    """Write a design from `start` of a contig on, which may go round, into the whole contig."""
    places = np.arange(start, start + len(design)) % len(whole)
    np.frombuffer(whole, np.uint8)[places] = np.frombuffer(design, np.uint8)


def refuse_constraints(model: TrainedModel, rules: DesignRules, guiding: Guiding | None) -> None:
    """Raises `UsageError` where bases must be drawn together, and are drawn each by itself."""
    why = "--from-noise draws" if model.objective.kind != "uniform" else "uniform noise draws"
    places = [one for some in rules.on_contig.values() for one in some]
    more = [one for one in (*rules.everywhere.parts(), *places) if not isinstance(one, KeepBases)]
    fix = "leave {} out, or give a run of --objective mdlm without --from-noise"
    if more:
        what = f"{why} each base independently, and constraints need joint draws: {more[0]}"
        raise UsageError(what, fix=fix.format("them"))
    if guiding is not None:
        what = f"{why} each base independently, and guidance starts from an empty region"
        raise UsageError(what, fix=fix.format("it"))
