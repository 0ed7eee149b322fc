"""New sequences and fillings, as a file (`genodiff sample`) and in memory."""

import logging
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from genodiff.data.tokenizer import Tokenizer
from genodiff.domain import DNA, DOMAINS, TEXT
from genodiff.errors import CheckpointError, DataError, UsageError, format_count
from genodiff.generate.dna_drawing import DnaDrawing, GapDrawing
from genodiff.generate.estimate import check_room, find_steps, plan_sampling
from genodiff.generate.filler import RecordParts, Sample
from genodiff.generate.guiding import Guiding, open_guided
from genodiff.generate.infill import Template, read_gaps, read_templates
from genodiff.generate.output_file import SampleFile
from genodiff.generate.request import DrawRequest, HeldSampleRequest, InfillRequest, SampleRequest
from genodiff.generate.sample import Drawing
from genodiff.generate.sampling import Sampling
from genodiff.generate.text_drawing import (
    TextDrawing,
    make_whole_template,
    parse_template,
    read_template,
)
from genodiff.io import atomic
from genodiff.io.faidx import Genome
from genodiff.io.regions import say_linear, says_circular
from genodiff.io.sequences import is_single, read_records, read_texts, restore_form
from genodiff.jobs.job import Job, Rows
from genodiff.models.opening import Published, open_any, refuse_fitted
from genodiff.runs.feed import open_model_tokenizer
from genodiff.runs.related_model import relate_model
from genodiff.runs.relatives_plan import describe_waiting
from genodiff.runs.trained_model import TrainedModel

_log = logging.getLogger("genodiff")
Asked = TypeVar("Asked", bound=DrawRequest)


class DrawJob(Job[Asked]):
    """The file of a drawing. What a screener must see first is not kept before."""

    noun, unit = "evaluations", "record"
    drawing: Drawing

    @abstractmethod
    def make_drawing(self, stack: ExitStack) -> Drawing:
        """The model and what is read, opened."""

    def open(self, stack: ExitStack) -> None:
        self.screener = self.request.open_screener()
        self.keeps = self.screener is None
        self.drawing = self.make_drawing(stack)
        self.work = self.drawing.workload()
        self.total = round(self.drawing.n * self.work.evaluations)

    def plan(self) -> dict[str, Any]:
        told = plan_sampling(self.drawing, self.work, self.list_files())
        return told | describe_waiting(self.drawing.model.relatives)

    def identify(self) -> dict[str, Any]:
        return self.drawing.identify()

    def weigh(self, entry: bytes) -> int:
        return 0  # each evaluation is told on its way

    def entries(self, first: int) -> Iterator[bytes]:
        done = first / max(1, self.drawing.n * self.work.records)
        self.tick(round(min(1.0, done) * self.total))
        journal = self.journal
        self.drawing.parts = RecordParts(journal.list_parts(), first, journal.append_part)
        for sample in self.drawing.draw(self.request.seed, first, self.tick):
            yield sample.pack()

    def write(self, rows: Rows) -> dict[str, Any]:
        asked = self.request
        out = SampleFile(
            str(asked.out), asked.sidecar_file, line_width=asked.line_width, screener=self.screener
        )
        samples = (Sample.unpack(i, row) for i, row in enumerate(rows()))
        told = self.drawing.write(out, samples, asked.seed, self.digest)
        records = told.pop("records")
        self.said = {**told, **out.told, "records": records}
        return self.said

    def finish(self, told: dict[str, Any]) -> dict[str, Any]:
        """Write the sidecar, which is a function of the request: no time and no machine."""
        said = {"genodiff": told["genodiff"], "requested": told["requested"], **self.said}
        if self.request.sidecar_file != "-":
            atomic.write_json(self.request.sidecar_file, said)
        replaced = sum(record.get("invalid_utf8", 0) for record in said["records"])
        if replaced:
            places = format_count(replaced, "place")
            what = "%s: %s that were no UTF-8 are written as U+FFFD"
            _log.warning(what, self.request.out, places)
        return said


_GENOME = 1 << 17
"""Bytes of a template to which relatives are fitted, as to a genome."""


class SampleJob(DrawJob[SampleRequest]):
    """The file of `genodiff sample`: new DNA, templates or regions filled, or text."""

    def _find_genome(self, model: TrainedModel) -> Any:
        """The template where it is the genome that relatives are fitted to, and no short piece."""
        asked, template = self.request, self.request.template
        if template in (None, "-"):
            return None
        if asked.is_partly or not model.reads_network:
            return template
        if not asked.relatives:
            return None
        if Path(str(template)).stat().st_size >= _GENOME:
            return template
        what = "%s is short: the related genomes are fitted to the training genome of %s"
        _log.warning(what, template, model.run.name)
        return None

    def make_drawing(self, stack: ExitStack) -> Drawing:
        asked = self.request
        known_dna = asked.known == DNA.name and not asked.is_partly
        templates = self._read_templates() if known_dna else None
        if known_dna:  # before the model is opened
            sizes = [asked.length or 1] if templates is None else [len(t.text) for t in templates]
            self._check_room(asked.n or (DNA.n_samples if templates is None else 1), sizes)
        if asked.is_partly and asked.template != "-":
            with Genome(str(asked.template)) as genome:
                read_gaps(genome, None if asked.bed is None else str(asked.bed), asked.region)
        opened = open_any(asked.find_run(), self.device)
        model, own = opened if isinstance(opened, Published) else (refuse_fitted(opened), None)
        fasta = self._find_genome(model)
        model = model.in_blocks(asked.block)
        model = relate_model(
            model, asked.relatives, strains=asked.strains, fasta=fasta, plan=asked.plan
        )
        domain = model.alphabet.domain
        if asked.known not in (None, domain):
            flag, right = DOMAINS[str(asked.known)].output_flag, DOMAINS[domain].output_flag
            fix = f"give {right} FILE in place of {flag}"
            raise CheckpointError(f"is a {domain} model", file=asked.find_run(), fix=fix)
        model, guiding = open_guided(model, asked.guide, self.device, asked.label)
        if guiding is not None and (domain == TEXT.name or asked.is_partly):
            what = "guidance fills new DNA and templates, not text and not --bed or --region"
            raise UsageError(what, fix="leave --guidance out, or cut the regions out as a template")
        how = asked.read_sampling()
        if asked.bits_lost is not None:
            how = replace(how, steps=find_steps(model, how, asked.bits_lost))
        if domain == TEXT.name:
            return self._draw_text(model, how, own)
        if asked.is_partly:
            return self._fill_gaps(model, how, stack)
        if templates is None:
            templates = self._read_templates()
        return self._draw_dna(model, how, templates, guiding)

    def _draw_dna(
        self,
        model: TrainedModel,
        how: Sampling,
        templates: Sequence[Template] | None,
        guiding: Guiding | None,
    ) -> Drawing:
        asked = self.request
        n = asked.n or (DNA.n_samples if templates is None else 1)
        drawing = DnaDrawing(
            model, how, n, length=asked.length, templates=templates, guiding=guiding,
            sources={"template": None if asked.template is None else str(asked.template)},
        )  # fmt: skip
        self._check_room(n, drawing.lengths)
        return drawing

    def _draw_text(self, model: TrainedModel, how: Sampling, own: Tokenizer | None) -> Drawing:
        asked = self.request
        asked.refuse_for_text()
        if asked.prompt is not None and asked.template is not None:
            raise UsageError("--prompt and --template exclude each other", fix="give one of them")
        tokenizer = own or open_model_tokenizer(model.run, model.alphabet)
        file = None if asked.template is None else str(asked.template)
        if file is None:
            template = make_whole_template(model, tokenizer, asked.length, asked.prompt)
        else:
            template = read_template(file)
        n = asked.n or (TEXT.n_samples if file is None else 1)
        sources = {"prompt": asked.prompt, "template": file}
        return TextDrawing(model, how, n, tokenizer, [template], sources)

    def _fill_gaps(self, model: TrainedModel, how: Sampling, stack: ExitStack) -> Drawing:
        asked, file = self.request, str(self.request.template)
        if file == "-":
            what = "--bed and --region need a genome in a file"
            raise UsageError(what, fix="give --template FILE")
        genome = stack.enter_context(Genome(file))
        bed = None if asked.bed is None else str(asked.bed)
        gaps = read_gaps(genome, bed, asked.region)
        sources = {"template": file, "bed": bed, "regions": list(asked.region) or None}
        return GapDrawing(
            model, how, asked.n or 1, genome, gaps, only_filled=asked.only_filled, sources=sources
        )

    def _read_templates(self) -> list[Template] | None:
        """The records of the template, if there is one. Raises `DataError`."""
        file = self.request.template
        if file is None:
            return None
        templates = list(read_templates(file))
        if not templates:
            fix = "give a FASTA file with at least one record"
            raise DataError("holds no record", file=file, fix=fix)
        circular = [one.name for one in templates if says_circular(one.description)]
        say_linear(str(file), circular)
        return templates

    def _check_room(self, n: int, lengths: Sequence[int]) -> None:
        asked = self.request
        check_room(str(asked.out), n, lengths, asked.line_width, asked.batch_size)


MARK = b"?"
"""A gap in a sequence in memory, as well as N."""


@dataclass(frozen=True)
class SampledSequence:
    """A new or filled sequence; `nfe` counts the evaluations of the network for it."""

    name: str
    sequence: str
    nfe: int


def draw_sequences(asked: HeldSampleRequest, holder: Any) -> list[Any]:
    """What `genodiff.Model.sample` gives: strings, or records. Raises `UsageError`."""
    model = refuse_fitted(holder.inner).in_blocks(asked.block)
    how = asked.read_sampling(holder.memory)
    drawing: DnaDrawing | TextDrawing
    if model.alphabet.domain == "text":
        tokenizer = holder.tokenizer
        whole = make_whole_template(model, tokenizer, asked.length, asked.prompt)
        drawing = TextDrawing(model, how, asked.n, tokenizer, [whole])
    elif asked.prompt is not None:
        what = "a prompt is for text, and the model is of DNA"
        raise UsageError(what, fix="use infill, with N where bases are to be filled in")
    else:
        drawing = DnaDrawing(model, how, asked.n, length=asked.length)
    drawn = _draw(drawing, asked.seed)
    return drawn if asked.records else [one.sequence for one in drawn]


def fill_sequences(asked: InfillRequest, holder: Any) -> Any:
    """What `genodiff.Model.infill` gives: the sequences filled, in the form of what was given."""
    model = refuse_fitted(holder.inner).in_blocks(asked.block)
    how = asked.read_sampling(holder.memory)
    given = asked.sequences
    if model.alphabet.domain == "text":
        texts = [parse_template(one) for one in read_texts(given)]
        drawn = _draw(TextDrawing(model, how, 1, holder.tokenizer, texts), asked.seed)
        filled = [one.sequence for one in drawn]
        restored: Any = filled[0] if isinstance(given, str) else filled
    else:
        records = read_records(given, extra=MARK)
        templates = [Template(one.name, one.description, one.sequence) for one in records]
        drawn = _draw(DnaDrawing(model, how, 1, templates=templates), asked.seed)
        restored = restore_form(given, [one.sequence for one in drawn], MARK)
    if not asked.records:
        return restored
    return drawn[0] if is_single(given, MARK) else drawn


def _draw(drawing: DnaDrawing | TextDrawing, seed: int) -> list[SampledSequence]:
    drawn = []
    for sample in drawing.draw(seed):
        filled = drawing.read(sample)
        drawn.append(SampledSequence(drawing.name(sample.number), filled.text.decode(), sample.nfe))
    return drawn
